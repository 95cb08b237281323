# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The module's work, without windows: it runs the program chunkwise, whose filters and parameters the program itself
describes. Needs Python 3.9 and nothing else."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


class ChunkwiseError(Exception):
    """A message for the user, in the program's words."""


@dataclass
class Parameter:
    """A parameter of a filter. `kind` is the element of the description: "boolean", "string-enumeration", ..."""

    flag: str
    kind: str
    label: str
    help: str
    default: str
    choices: list = field(default_factory=list)
    minimum: float = None
    maximum: float = None
    step: float = None
    group: str = ""
    advanced: bool = False

    @property
    def is_of_machine(self):
        """Whether it says where and within which memory the program runs, not what it computes."""
        return self.group == "Machine"

    @property
    def is_file(self):
        return self.kind in ("image", "file")


@dataclass
class Filter:
    name: str
    group: str
    help: str
    parameters: list
    page: str = ""

    @classmethod
    def from_xml(cls, text):
        root = ElementTree.fromstring(text)
        parameters = []
        for group in root.findall("parameters"):
            for element in group:
                if element.findtext("longflag") is None:
                    continue

                def number(name):
                    value = element.findtext("constraints/" + name)
                    return None if value is None else float(value)

                parameters.append(Parameter(
                    element.findtext("longflag"), element.tag, element.findtext("label"), element.findtext("description"),
                    element.findtext("default") or "", [e.text for e in element.findall("element")],
                    number("minimum"), number("maximum"), number("step"), group.findtext("label") or "",
                    group.get("advanced") == "true"))
        return cls(root.findtext("title").split(" ", 1)[1], root.findtext("category").rsplit(".", 1)[-1],
                   root.findtext("description"), parameters, root.findtext("documentation-url") or "")

    def words(self, values, machine=True):
        """The options for values by flag; missing ones have their defaults. Without `machine` those of the
        filter alone, as a step of a sequence has them."""
        known = {p.flag for p in self.parameters}
        for flag in values:
            if flag not in known:
                raise ChunkwiseError(f"{self.name} has no parameter {flag}")
        words = []
        for parameter in self.parameters:
            if parameter.is_of_machine and not machine:
                continue
            value = values.get(parameter.flag, parameter.default)
            if parameter.kind == "boolean":
                if value in (True, "true"):
                    words.append("--" + parameter.flag)
            elif value is not None and str(value) != "":
                words += ["--" + parameter.flag, str(value)]
        return words


@dataclass
class Operation(Filter):
    """A subcommand on labels that is no filter: it needs the whole image, and is a step by itself."""

    is_table: bool = False
    is_planned: bool = True

    def command(self, source, result, values):
        """Its words after the subcommand's name. Flags of the machine that it does not know are left out."""
        known = {p.flag: p for p in self.parameters}
        positionals, options = [source], []
        for flag, value in values.items():
            value = str(value).strip()
            if flag not in known:
                if flag not in MACHINE_FLAGS:
                    raise ChunkwiseError(f"{self.name} has no parameter {flag}")
            elif known[flag].kind == "boolean":
                options += ["--" + flag] if value in ("True", "true") else []
            elif value == "":
                continue
            elif known[flag].kind == "image":
                positionals.append(value)
            else:
                # One option for each condition.
                for part in value.split(";") if flag == "where" else [value]:
                    options += ["--" + flag, part.strip()]
        if not self.is_table:
            return [*positionals, result, *options]
        if not result.lower().endswith(".csv"):
            raise ChunkwiseError(f"the result of {self.name} is a table: a file .csv")
        return [*positionals, "--out", result, *options]

    def words(self, values, machine=True):
        return self.command("", ".csv", values)[1:]


MACHINE_FLAGS = ("memory", "threads", "backend", "devices")

_MACHINE_OF_OPERATIONS = [
    Parameter("memory", "string", "Memory", "Host memory for the run, as 512M or 1.5G", "", group="Machine"),
    Parameter("threads", "integer", "Threads", "Threads of the CPU; all if empty", "", group="Machine"),
]

OPERATIONS = {operation.name: operation for operation in (
    Operation("measure", "Objects", "Measure the objects of a label map, or the segments of a segmentation saved as one: "
              "a table with a row for each object. The result is a file .csv", [
                  Parameter("intensity", "image", "Intensities", "File of a volume on the label map's grid, whose values are measured "
                            "in each object too", ""),
                  Parameter("columns", "string", "Columns", "Only these, as label,num_pixels,centroid; all that are usual if empty", ""),
                  Parameter("quantiles", "string", "Quantiles", "Of each object's intensities, as 0.25,0.5; 0.5 is the median", ""),
                  Parameter("contacts", "file", "Table of contacts", "File .csv for another table: each two objects that touch, and "
                            "the area between them", "", advanced=True),
                  *_MACHINE_OF_OPERATIONS], is_table=True),
    Operation("filter-labels", "Objects", "Remove objects of a label map by their size or by what is measured of them", [
        Parameter("min-size", "integer", "Smallest size", "Keep objects of this many voxels or more", ""),
        Parameter("max-size", "integer", "Largest size", "Keep objects of this many voxels or fewer", ""),
        Parameter("where", "string", "Conditions", "Keep objects that meet these, as extent > 0.5; euler_number = 1, with columns "
                  "of measure", ""),
        Parameter("remove-border", "boolean", "Remove at the edge", "Remove objects at the edge of the image", "false"),
        Parameter("keep-largest", "integer", "Keep largest", "Keep only so many, the largest, of these objects", ""),
        Parameter("relabel", "boolean", "Number anew", "Number the objects that are kept 1, 2, ...", "false"),
        Parameter("replace", "file", "Replacements", "File with lines old,new: labels that first become others", "", advanced=True),
        *_MACHINE_OF_OPERATIONS]),
    Operation("fill-label-holes", "Objects", "Fill the holes of a label map's objects: background that one object alone encloses",
              [*_MACHINE_OF_OPERATIONS], is_planned=False),
)}


def refuse_in_sequence(names):
    """Throws ChunkwiseError where a name is of no filter and would be one step of several."""
    for name in names if len(names) > 1 else ():
        if name in OPERATIONS:
            raise ChunkwiseError(f"{name} needs the whole image and cannot be a step of a sequence: apply it to the sequence's result")


def region_of_slice(extent, axis, index):
    """The region, as begins and sizes, of one slice across an axis."""
    if not 0 <= index < extent[axis]:
        raise ChunkwiseError(f"slice {index} is not one of {extent[axis]}")
    begin = [0] * len(extent)
    size = list(extent)
    begin[axis], size[axis] = index, 1
    return begin + size


def region_of_bounds(extent, lower, upper):
    """The region of all voxels whose centers lie between two corners, given in voxels: cut at the image."""
    begin, size = [], []
    for n, a, b in zip(extent, lower, upper):
        low, high = min(a, b), max(a, b)
        first = max(0, -int(-low // 1))
        last = min(n - 1, int(high // 1))
        if last < first:
            raise ChunkwiseError("the region lies beside the image")
        begin.append(first)
        size.append(last - first + 1)
    return begin + size


def scale_region(region, extent, to):
    """A region of an image as that of the same image with other voxels: between the edges, and one slice for a slice."""
    begin, size = [], []
    for first, count, n, m in zip(region, region[len(extent):], extent, to):
        if count == 1:
            begin.append((2 * first + 1) * m // (2 * n))
            size.append(1)
        else:
            begin.append(first * m // n)
            size.append(-(-(first + count) * m // n) - begin[-1])
    return begin + size


# Stores of Zarr, which Slicer itself does not read: a level of them is shown.

def is_store(path):
    """Whether a folder is a group or an array of Zarr."""
    return any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zgroup", ".zarray"))


def levels_of(store):
    """The paths of the levels of an image of OME-Zarr, the whole image first; of other stores, the store."""
    for name in ("zarr.json", ".zattrs"):
        try:
            text = json.loads(Path(store, name).read_text(encoding="utf-8"))
            attributes = text.get("attributes", {}) if name == "zarr.json" else text
            datasets = attributes.get("ome", attributes)["multiscales"][0]["datasets"]
            return [os.path.join(store, level["path"]) for level in datasets]
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
            continue
    return [store]


@dataclass
class Job:
    """A run that can be described before it is started. `steps` are pairs of a filter's name and its values."""

    steps: list
    source: str
    result: str
    machine: dict = field(default_factory=dict)
    region: list = None

    def to_json(self):
        """The steps alone: they serve for other images too."""
        return json.dumps({"chunkwise": 1, "steps": [[name, values] for name, values in self.steps]}, indent=1)


def steps_from_json(text, filters):
    """The job that Job.to_json wrote; refuses any other text, or names filters and parameters that there are not."""
    try:
        steps = [(name, dict(values)) for name, values in json.loads(text)["steps"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ChunkwiseError(f"this is no sequence of filters: {error}") from error
    for name, values in steps:
        if name not in filters:
            raise ChunkwiseError(f"there is no filter {name}")
        filters[name].words(values)
    refuse_in_sequence([name for name, _ in steps])
    return steps


class Program:
    """The program chunkwise."""

    def __init__(self, path=None):
        self.path = path or os.environ.get("CHUNKWISE_PROGRAM") or shutil.which("chunkwise")
        if not self.path or not os.access(self.path, os.X_OK):
            raise ChunkwiseError("the program chunkwise was not found; install it, or choose where it is")
        self._filters = None

    def _environment(self):
        """Slicer's own libraries are not the program's."""
        environment = dict(os.environ)
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH"):
            environment.pop(name, None)
        return environment

    def ask(self, *words):
        """The program's output; throws ChunkwiseError with its message if it fails."""
        shown = subprocess.run([self.path, *map(str, words)], capture_output=True, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, env=self._environment())
        if shown.returncode != 0:
            raise ChunkwiseError(shown.stderr.strip() or f"chunkwise ended with {shown.returncode}")
        return shown.stdout

    @property
    def filters(self):
        """All filters by name, as the program describes them."""
        if self._filters is None:
            with tempfile.TemporaryDirectory() as folder:
                self.ask("slicer-modules", folder)
                filters = [Filter.from_xml(file.read_bytes()) for file in sorted(Path(folder).glob("*.xml"))]
            self._filters = {f.name: f for f in filters}
        return self._filters

    @property
    def commands(self):
        """The filters, and the operations on labels."""
        return {**self.filters, **OPERATIONS}

    def devices(self):
        """As "devices --json" prints them."""
        return json.loads(self.ask("devices", "--json"))

    def words(self, job):
        """The command line of a job, without the program."""
        for name, _ in job.steps:
            if name not in self.commands:
                raise ChunkwiseError(f"there is no filter {name}")
        if not job.steps:
            raise ChunkwiseError("no filter is chosen")
        if len(job.steps) == 1:
            name, values = job.steps[0]
            if name in OPERATIONS:
                if job.region:
                    raise ChunkwiseError(f"{name} needs the whole image: there is no preview")
                return [name, *OPERATIONS[name].command(job.source, job.result, {**values, **job.machine})]
            words = [name, job.source, job.result, *self.filters[name].words({**values, **job.machine})]
        else:
            refuse_in_sequence([name for name, _ in job.steps])
            words = ["sequence", job.source, job.result]
            for name, values in job.steps:
                step = [name, *self.filters[name].words(values, machine=False)]
                if any(re.search(r"\s", word) for word in step):
                    raise ChunkwiseError(f"{name} in a sequence: values must not have blanks")
                words += ["--step", " ".join(step)]
            words += [w for flag, value in job.machine.items() if str(value) != "" for w in ("--" + flag, str(value))]
        if job.region:
            words += ["--region", ",".join(map(str, job.region))]
        return words

    def command_line(self, job):
        """To copy: what a shell would be given."""
        def quoted(word):
            return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\\''") + "'"
        return " ".join(quoted(str(word)) for word in ["chunkwise", *self.words(job)])

    def plan(self, job):
        """The data that a job would read, write and hold, from the planner; throws the error of the run. None where the
        planner does not know the command."""
        if len(job.steps) == 1 and job.steps[0][0] in OPERATIONS and not OPERATIONS[job.steps[0][0]].is_planned:
            self.words(job)
            return None
        return json.loads(self.ask("plan", *self.words(job), "--json"))

    def image(self, source):
        """The extent of an image and the bytes of its voxels."""
        plan = self.plan(Job([("identity", {})], source, os.path.join(tempfile.gettempdir(), "plan.mha")))
        return plan["input"]["extent"], plan["divisions"]["bytesWritten"]

    def level_to_show(self, store, most_bytes):
        """The finest level of a store that has no more bytes."""
        for level in levels_of(store):
            if self.image(level)[1] <= most_bytes:
                return level
        raise ChunkwiseError(f"{store} has no level of {most_bytes >> 20} MiB or less; chunkwise pyramid adds levels")

    def start(self, job, on_progress=None):
        words = self.words(job)
        return Run(self, words, on_progress, has_progress=words[0] not in OPERATIONS)

    def batch(self, job, sources, pattern, on_progress=None):
        """A run over several files; `pattern` has {stem}. Finished results stay when it is cancelled."""
        for name, _ in job.steps:
            if name in OPERATIONS:
                raise ChunkwiseError(f"{name} takes one image at a time: choose a result without {{stem}}")
        words = self.words(Job(job.steps, "IN", "OUT", job.machine))
        return Run(self, [words[0], *sources, "--out", pattern, *words[3:]], on_progress)


class Run:
    """A run in the background. `on_progress` is called from another thread, with a share from 0 to 1; not without
    `has_progress`, for subcommands that do not tell it."""

    def __init__(self, program, words, on_progress=None, has_progress=True):
        self.words = [str(w) for w in words]
        self.warnings = []
        self.progress = 0.0
        self.cancelled = False
        self.has_progress = has_progress
        self._errors = []
        self._process = subprocess.Popen(
            [program.path, *self.words, *(["--progress", "xml"] if has_progress else [])], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", stdin=subprocess.DEVNULL, env=program._environment())
        self._threads = [threading.Thread(target=self._listen, args=(on_progress,), daemon=True),
                         threading.Thread(target=self._keep_errors, daemon=True)]
        for thread in self._threads:
            thread.start()

    def _listen(self, on_progress):
        in_start = False
        for line in self._process.stdout:
            progress = re.match(r"<filter-progress>(.*)</filter-progress>", line)
            comment = re.match(r"<filter-comment>(.*)</filter-comment>", line)
            in_start = "<filter-start>" in line or (in_start and "</filter-start>" not in line)
            if progress:
                self.progress = float(progress.group(1))
                if on_progress:
                    on_progress(self.progress)
            elif comment and not in_start:
                self.warnings.append(comment.group(1))

    def _keep_errors(self):
        self._errors += self._process.stderr.read().splitlines()

    def is_running(self):
        return self._process.poll() is None

    def cancel(self):
        """Ends the run; it leaves nothing behind."""
        if self.is_running():
            self.cancelled = True
            self._process.terminate()

    def wait(self):
        """Throws ChunkwiseError where the run failed or was cancelled. Returns its warnings."""
        status = self._process.wait()
        for thread in self._threads:
            thread.join()
        self._process.stdout.close()
        self._process.stderr.close()
        if self.cancelled and status != 0:
            raise ChunkwiseError("cancelled")
        if status != 0:
            raise ChunkwiseError("\n".join(self._errors) or f"chunkwise ended with {status}")
        return self.warnings if self.has_progress else self._errors


def memory_text(bytes_):
    """For --memory: whole MiB."""
    return f"{max(1, int(bytes_) >> 20)}M"


def describe_plan(plan):
    """One line for people."""
    def size(bytes_):
        return f"{bytes_ / 2**30:.1f} GiB" if bytes_ >= 2**30 else f"{bytes_ / 2**20:.1f} MiB"
    divisions = plan["divisions"]
    if "reads" in plan:  # an operation on labels
        return (f"{divisions['count']} division{'s' if divisions['count'] != 1 else ''}, {size(divisions['bytesRead'])} read"
                f"{' in two passes' if plan['reads'] == 2 else ''}")
    twice = divisions["bytesRead"] / max(1, divisions["bytesWritten"])
    text = (f"{divisions['count']} division{'s' if divisions['count'] != 1 else ''}, "
            f"{size(divisions['bytesAtOnce'] + plan['bytesBesideDivisions'])} of memory, "
            f"{size(divisions['bytesRead'])} read ({twice:.2f} of what is written)")
    if plan["secondsExpected"] is not None:
        text += f", about {plan['secondsExpected']:.1f} s to compute"
    if isinstance(plan["budgetFactor"], (int, float)) and plan["budgetFactor"] > 1.25:
        text += f"; the memory makes it take {plan['budgetFactor']:.1f} times as long"
    return text
