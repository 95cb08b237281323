# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The program's output for other programs: descriptions of filters, modules for 3D Slicer, scripts for Fiji,
progress."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from adversary.subcommands import OTHERS, Inputs, REQUIRED
from adversary.support import HANGS, ProgramTest, listed_options, listed_subcommands, noise, read, run, write
from adversary import support
from adversary.schema import violations

ORDER = ("name", "longflag", "index", "description", "label", "default", "channel", "element", "constraints")
NOT_IN_FORMS = {"help", "divisions", "raw", "region", "out", "overwrite", "redo", "resume", "compress", "quiet", "verbose", "json",
                "progress", "returnparameterfile", "untrusted", "xml", "zarr"}

# Groups of a form, in their order; all but the first and the last two may be missing.
GROUPS = ("Images", "Parameters", "Edge and missing values", "Advanced parameters", "Machine", "Report")

# Values that need others beside them: real results for transforms, as many weights as the radius says, and a Gaussian
# that has any weight beside its center.
DEPEND = {("hessian", "number"), ("resample", "scale"), ("resample", "noPrefilter"), ("gaussian", "fft"), ("gaussian", "transforms"), ("convolve", "radius"), ("log", "sigma"), ("derivative", "sigma"), ("gradient", "sigma"), ("hessian", "sigma"), ("structure-tensor", "number"), ("divergence", "sigma"), ("curvature", "sigma"), ("structure-tensor", "sigma"), ("vesselness", "scales"), ("coherence-diffusion", "sigma"),
          ("distance", "insidePositive")}


def filters():
    """The subcommands that are rows of the table of filters."""
    return [name for name in listed_subcommands() if name in REQUIRED and name != "sequence"]


def module_name(subcommand):
    return "Chunkwise" + "".join(word.capitalize() for word in subcommand.split("-"))


def flag_name(option):
    first, *others = option.split("-")
    return first + "".join(word.capitalize() for word in others)


class Description:
    """The XML of a filter, read as a host does."""

    def __init__(self, text):
        self.root = ElementTree.fromstring(text)
        self.parameters = [p for group in self.root.findall("parameters") for p in group if p.tag not in ("label", "description")]

    def inputs(self):
        return {p.findtext("longflag"): p for p in self.parameters if p.findtext("longflag") is not None}

    def command_line(self, given, source, out):
        """As 3D Slicer makes it: numbers and choices always, texts unless they are empty, flags if they are true, then the
        images."""
        words = []
        for flag, parameter in self.inputs().items():
            value = given.get(flag, parameter.findtext("default") or "")
            if parameter.tag == "boolean":
                words += ["--" + flag] if value == "true" else []
            elif value or parameter.tag in ("integer", "double", "string-enumeration"):
                words += ["--" + flag, str(value)]
        return [*words, str(source), str(out)]


class Hosts(ProgramTest):
    def describe(self, subcommand):
        result = self.assert_runs("--xml", subcommand)
        self.assertEqual(result.stderr, "")
        self.assertTrue(result.stdout.startswith("<?xml"), result.stdout[:50])
        return Description(result.stdout)

    def files_of(self, inputs, description):
        """Files for what has no default: images, kernels, networks."""
        table = {"marker": "marker", "minus": "second", "kernel": "kernel", "kernels": "kernels", "model": "model"}
        return {flag: inputs.files[table[flag]] for flag, p in description.inputs().items()
                if p.tag in ("image", "file") and flag in table}

    def test_all_filters_have_modules_scripts_words_and_a_manual(self):
        modules, scripts = self.folder / "mödules of mine", self.folder / "scripts"
        self.assertIn(str(len(filters())), self.assert_runs("slicer-modules", modules).stdout)
        self.assert_runs("fiji-scripts", scripts)
        manual = self.assert_runs("man").stdout.replace("\\-", "-")
        completions = [self.assert_runs("completion", shell).stdout for shell in ("bash", "zsh")]
        self.assertEqual(sorted(p.name for p in modules.iterdir()),
                         sorted(module_name(f) + e for f in filters() for e in ("", ".xml")))
        self.assertEqual(sorted(p.name for p in scripts.iterdir()),
                         sorted("Chunkwise_" + f.replace("-", "_") + ".groovy" for f in filters()))
        for name in [*filters(), "sequence", *OTHERS]:
            with self.subTest(subcommand=name):
                self.assertRegex(manual, rf"(?m)^\\fB{name}\\fR$")
                for completion in completions:
                    self.assertRegex(completion, rf"\b{name}\b")
                for option in listed_options(name):
                    self.assertIn(f"--{option}", manual)
                    for completion in completions:
                        self.assertIn(f"--{option}", completion)
        for name in filters():
            with self.subTest(filter=name):
                self.assertEqual((modules / (module_name(name) + ".xml")).read_text(), self.assert_runs("--xml", name).stdout)
                script = (scripts / ("Chunkwise_" + name.replace("-", "_") + ".groovy")).read_text()
                for option in set(listed_options(name)) - NOT_IN_FORMS:
                    self.assertIn(f'"--{option}"', script)

    def test_descriptions(self):
        for name in filters():
            with self.subTest(filter=name):
                description = self.describe(name)
                self.assertEqual(run(name, "--xml").stdout, run("--xml", name).stdout)
                flags = description.inputs()
                self.assertEqual(set(flags), {flag_name(o) for o in set(listed_options(name)) - NOT_IN_FORMS})
                self.assertRegex(description.root.findtext("documentation-url"), rf"^https://.*/formulas\.md#{name}$")
                groups = [group.findtext("label") for group in description.root.findall("parameters")]
                self.assertEqual(groups, [each for each in GROUPS if each in groups])
                folded = {"Advanced parameters", "Machine"}
                self.assertEqual({g.findtext("label") for g in description.root.findall("parameters") if g.get("advanced") == "true"},
                                 folded & set(groups))
                names = [p.findtext("name") for p in description.parameters]
                self.assertEqual(len(names), len(set(names)))
                for parameter in description.parameters:
                    order = [ORDER.index(child.tag) for child in parameter]
                    self.assertEqual(order, sorted(order), parameter.findtext("name"))
                    self.assertRegex(parameter.findtext("name"), r"^[A-Za-z][A-Za-z0-9_]*$")
                    for needed in ("label", "description"):
                        self.assertTrue(parameter.findtext(needed), parameter.findtext("name"))
                    if parameter.tag in ("integer", "double", "integer-vector", "double-vector", "string-enumeration"):
                        self.assertTrue(parameter.findtext("default"), parameter.findtext("name"))
                    if parameter.tag == "string-enumeration":
                        self.assertIn(parameter.findtext("default"), [e.text for e in parameter.findall("element")])
                for index, channel in (("0", "input"), ("1", "output")):
                    image = [p for p in description.parameters if p.findtext("index") == index][0]
                    self.assertEqual((image.tag, image.findtext("channel")), ("image", channel))
                    # Uncompressed MetaImage, which is read and written in pieces.
                    self.assertEqual(image.get("fileExtensions"), ".mha")
        for words in (("--xml",), ("--xml", "men"), ("sequence", "--xml"), ("--xml", "devices")):
            self.assert_refused(*words, names="--xml", status=2)

    def test_descriptions_keep_to_the_schema(self):
        for name in filters():
            with self.subTest(filter=name):
                self.assertEqual(list(violations(self.describe(name).root)), [])
        # The rules notice what is wrong.
        text = self.assert_runs("--xml", "median").stdout
        for good, bad in (
            ("<title>", "<x>a</x><title>"), ("<title>Chunkwise median</title>", ""), ("<index>0</index>", ""),
            ("<index>0</index>", "<index>-1</index>"), ("<index>0</index>", "<longflag>a</longflag><index>0</index>"),
            ("<longflag>radius</longflag>", "<longflag>ra-dius</longflag>"), ("<name>radius</name>", "<name>1</name>"),
            ("<name>radius</name>", "<name>boundary</name>"), ("<label>Radius (voxels)</label>", ""), ("<step>1</step>", ""),
            ("<step>1</step>", "<step>one</step>"), ("<minimum>0</minimum>", "<least>0</least>"),
            ("integer-vector>", "integers>"), ("string-enumeration>", "string>"),
            ('reference="inputVolume"', 'reference="volume"'), ('fileExtensions=', 'extensions='),
            ("<channel>input</channel>", "<channel>in</channel>"), ("<label>Images</label>", ""),
        ):
            with self.subTest(bad=bad, good=good):
                self.assertIn(good, text)
                self.assertNotEqual(list(violations(ElementTree.fromstring(text.replace(good, bad)))), [])

    def test_defaults_and_ends_of_ranges_are_accepted(self):
        inputs = Inputs(self.folder)
        for name in filters():
            description = self.describe(name)
            files = self.files_of(inputs, description)
            files.update({"grid": "2,1,1"} if name in ("convolve-varying", "deconvolve-varying") else {})
            files.update({"sigma": "1"} if name in ("derivative", "gradient", "hessian", "divergence", "curvature", "structure-tensor") else {})
            files.update({"ofGradient": "true"} if name == "divergence" else {})
            trials = [{}]
            for flag, parameter in description.inputs().items():
                values = [e.text for e in parameter.findall("element")]
                if flag == "backend":
                    values.remove("cuda")  # there may be none
                if flag == "transforms":
                    values = ["own"]  # of the others there may be none
                if parameter.tag == "boolean":
                    values = ["true"]
                for end in parameter.findall("constraints/minimum") + parameter.findall("constraints/maximum"):
                    if float(end.text) < 1000:
                        values.append(end.text)
                trials += [{flag: value} for value in values if value != parameter.findtext("default")]
            for trial in trials:
                if trial in ({"summedAxes": "2"},) or (name == "sat" and "outputType" in trial):
                    continue  # types that hold no sums are refused
                if name == "network" and trial.get("result") == "threshold":
                    trial["threshold"] = "0.5"
                given = {**files, **trial}
                if "operator" in trial:
                    given.pop("sigma", None)  # only Gaussians have one
                words = [name, *description.command_line(given, inputs.path, self.out)]
                with self.subTest(filter=name, trial=trial):
                    result = run(*words, "--quiet")
                    # Types of 8 bits have no NaN, and without a mask windows see all.
                    if (name, *trial) in DEPEND or "ignoreNan" in trial or "outputMask" in trial:
                        self.assert_failed(result, status=2)
                        continue
                    # The image has more minima than these types have labels.
                    if name == "watershed" and trial.get("outputType") in ("int8", "uint8"):
                        self.assert_failed(result, status=1)
                        continue
                    self.assertEqual((result.returncode, result.stderr), (0, ""), str(result))

    def test_flags_of_hosts_do_what_options_do(self):
        inputs = Inputs(self.folder)
        name = "closing-by-reconstruction"
        self.assert_runs(name, inputs.path, self.out, "--radius=1")
        other = self.out.read_bytes()
        self.assert_runs(name, inputs.path, self.out, "--radius=1", "--preserve-intensities", "--output-type=float32")
        expected = self.out.read_bytes()
        self.assertNotEqual(expected, other)
        for words in (("--outputType", "float32"), ("--outputType=float32",)):
            self.assert_runs(name, "--radius=1", "--preserveIntensities", *words, inputs.path, self.out)
            self.assertEqual(self.out.read_bytes(), expected)
        self.assert_runs("plan", "mean", inputs.path, self.out, "--radius=1", "--deviceMemory=1G")
        self.assert_refused("mean", inputs.path, self.out, "--radius=1", "--DeviceMemory=1G", names="--device-memory")

    def test_launchers(self):
        modules = self.folder / "mödules 'of' mine"
        self.assert_runs("slicer-modules", modules)
        inputs = Inputs(self.folder)
        source = self.folder / "ïn put.mha"
        shutil.copy(inputs.path, source)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "PATH": "/usr/bin:/bin"}
        for name in filters():
            with self.subTest(filter=name):
                launcher = modules / module_name(name)
                shown = subprocess.run([launcher, "--xml"], capture_output=True, env=environment, timeout=HANGS)
                self.assertEqual((shown.returncode, shown.stderr), (0, b""))
                self.assertEqual(shown.stdout, launcher.with_suffix(".xml").read_bytes())
        result = subprocess.run(
            [modules / "ChunkwiseMean", "--radius", "2", "--returnparameterfile", self.folder / "réport", source, self.out],
            capture_output=True, env=environment, timeout=HANGS, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        again = self.folder / "again.mha"
        self.assert_runs("mean", source, again, "--radius=2")
        self.assertEqual(self.out.read_bytes(), again.read_bytes())
        rows = dict(line.split(" = ") for line in (self.folder / "réport").read_text().splitlines())
        names = [p.findtext("name") for p in self.describe("mean").parameters if p.tag != "image" and p.findtext("channel") == "output"]
        self.assertEqual(len(names), 5)
        self.assertEqual(sorted(rows), sorted(names))
        self.assertGreater(float(rows["seconds"]), 0)
        # A second time, over what is there; and where nothing can be written.
        self.assert_runs("slicer-modules", modules)
        self.assert_failed(run("slicer-modules", source / "below"), "FOLDER", 1)
        self.assert_failed(run("slicer-modules", "/proc/none"), "FOLDER", 1)

    def test_progress_for_hosts(self):
        source = write(self.folder / "in.mha", noise((96, 96, 96), "uint8", 1))
        result = self.assert_runs("median", source, self.out, "--radius=6", "--threads=1", "--divisions=4", "--progress=xml")
        self.assertEqual(result.stderr, "")
        for line in result.stdout.splitlines():
            self.assertRegex(line, r"^</?filter-[a-z]+>|<filter-\w+>[^<>]*</filter-\w+>$")
        shares = [float(s) for s in re.findall(r"<filter-progress>([^<]*)</filter-progress>", result.stdout)]
        self.assertGreater(len(shares), 1)
        self.assertEqual(shares, sorted(shares))
        self.assertTrue(all(0 <= s <= 1 for s in shares), shares)
        self.assertLess(result.stdout.index("<filter-start>"), result.stdout.index("<filter-progress>"))
        self.assertTrue(result.stdout.rstrip().endswith("</filter-end>"))
        # Warnings are comments, errors are not.
        image = write(self.folder / "large.mha", noise((6, 5, 4), "int16", 2, -900, 900))
        result = self.assert_runs("identity", image, self.out, "--output-type=uint8", "--progress=xml")
        self.assertEqual(result.stderr, "")
        self.assertRegex(result.stdout, r"<filter-comment>\d+ voxels were outside of uint8")
        self.assert_refused("identity", image, self.folder / "none" / "o.mha", "--progress=xml", out=self.out)

    def test_memory_is_a_limit_that_holds(self):
        """Filters a volume that Slicer would hand over, larger than the module's memory."""
        modules = self.folder / "modules"
        self.assert_runs("slicer-modules", modules)
        source = support.write_sparse(self.folder / "in.mha", (1024, 1024, 1024 if support.EXHAUSTIVE else 128), "int16")
        needed = int(re.search(r"needs (\d+) MiB", run("median", source, self.out, "--radius=1", "--memory=1M").stderr).group(1))
        shown = subprocess.run(
            [modules / "ChunkwiseMedian", "--radius", "1", "--boundary", "renormalized", "--memory", f"{needed + 64}M",
             "--returnparameterfile", self.folder / "report", source, self.out], capture_output=True, timeout=5 * HANGS)
        self.assertEqual((shown.returncode, shown.stderr), (0, b""))
        report = dict(line.split(" = ") for line in (self.folder / "report").read_text().splitlines())
        self.assertLess(float(report["peakMebibytes"]), needed + 64)
        self.assertLess(needed + 64, source.stat().st_size >> 20)
        self.assertEqual(self.out.stat().st_size > source.stat().st_size - 1000, True)

    def test_a_killed_run_is_cleared_by_the_next(self):
        source = write(self.folder / "in.mha", noise((128, 128, 128), "uint8", 1))
        work = self.folder / "work"
        work.mkdir()
        process = subprocess.Popen([support.PROGRAM, "median", str(source), str(work / "o.mha"), "--radius=9", "--divisions=128",
                                    "--threads=1", "--progress=xml"], stdout=subprocess.DEVNULL)
        end = time.monotonic() + HANGS
        while not list(work.glob(".o.mha.*/o.mha")) and time.monotonic() < end:
            self.assertIsNone(process.poll(), "it ended before it could be killed")
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertTrue(list(work.iterdir()), "what is to be cleared")
        self.assert_runs("identity", source, work / "o.mha")
        self.assertEqual([p.name for p in work.iterdir()], ["o.mha"])

    def test_images_that_hosts_may_hand_over(self):
        """2-D, one slice, labels, several values a voxel."""
        for size, kind in (((9, 8), "uint8"), ((9, 8, 1), "int16"), ((5, 4, 3), "uint32"), ((5, 4, 3), "int8")):
            source = write(self.folder / "in.mha", noise(size, kind, 3))
            with self.subTest(size=size, kind=kind):
                self.assert_runs("median", source, self.out, "--radius=1", "--progress=xml")
                self.assertEqual(read(self.out).size, size)
        image = noise((8, 6, 5), "uint8", 1)
        source = write(self.folder / "vector.mha", image)
        text = source.read_bytes().replace(b"ElementDataFile", b"ElementNumberOfChannels = 2\nElementDataFile")
        source.write_bytes(text.replace(b"DimSize = 8 6 5", b"DimSize = 4 6 5"))
        self.assert_runs("median", source, self.out, "--radius=1")
        self.assertIn(b"ElementNumberOfChannels = 2", self.out.read_bytes()[:2000])

    def complete_in_bash(self, *words):
        script = self.folder / "chunkwise.bash"
        if not script.exists():
            script.write_text(self.assert_runs("completion", "bash").stdout)
        shown = subprocess.run(
            ["bash", "-c", 'source "$0"; COMP_WORDS=(chunkwise "$@"); COMP_CWORD=$#; _chunkwise; printf "%s\\n" "${COMPREPLY[@]}"',
             script, *words], capture_output=True, text=True, cwd=self.folder, timeout=HANGS)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        return sorted(line for line in shown.stdout.splitlines() if line)

    def test_completion_in_bash(self):
        (self.folder / "image one.mha").touch()
        for words, expected in (
            (("med",), ["median"]), (("plan", "fill"), ["fill-holes"]), (("median", "--bou"), ["--boundary"]),
            (("median", "--boundary", "m"), ["mirror", "mirror-center"]), (("median", "--boundary", "=", "pe"), ["periodic"]),
            (("plan", "maximum", "--element", "b"), ["ball", "box"]), (("median", "ima"), ["image one.mha"]),
            (("network", "--model", "ima"), ["image one.mha"]), (("median", "--radius", ""), []),
            (("median", "image one.mha", "o.mha", "--he"), ["--help"]), (("completion", ""), ["bash", "zsh"]),
            (("entropy", "--range", ""), ["auto"]), (("devices", "--j"), ["--json"]), (("--ver",), ["--version"]),
        ):
            with self.subTest(words=words):
                found = self.complete_in_bash(*words)
                self.assertEqual([f for f in found if f in expected or words[0] != "completion"], expected)
        for name in filters():
            with self.subTest(filter=name):
                self.assertIn(name, self.complete_in_bash(name))
                self.assertEqual(set(self.complete_in_bash(name, "--")), {"--" + o for o in listed_options(name)})
        self.assert_refused("completion", "fish", names=("SHELL", "fish"), status=2)

    def complete_in_zsh(self, lines):
        """The completion of each line after a tab, in a zsh with a separate terminal; control X has it written down."""
        answers = self.folder / "answers"
        (self.folder / ".zshrc").write_text("""
            unsetopt beep
            PS1=
            fpath=("$ZDOTDIR" $fpath)
            autoload -U compinit
            compinit -u -d ./dump
            write-down() { print -r -- "$BUFFER" >>answers; BUFFER= }
            zle -N write-down
            bindkey '^X' write-down
            print -r -- ready >>answers
        """)
        answers.touch()
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-d", "-i"], {**os.environ, "ZDOTDIR": str(self.folder), "TERM": "vt100"})
        try:
            for i, line in enumerate(["", *lines]):
                if i > 0:
                    os.write(terminal, f"{line}\t\x18".encode())
                ends = time.monotonic() + HANGS / 4
                while len(answers.read_text().splitlines()) <= i:
                    self.assertLess(time.monotonic(), ends, f"no answer to {line!r}: {answers.read_text()!r}")
                    # The characters that it draws must be read.
                    if select.select([terminal], [], [], 0.01)[0]:
                        os.read(terminal, 65536)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(terminal)
        return answers.read_text().splitlines()[1:]

    def test_completion_in_zsh(self):
        script = self.folder / "_chunkwise"
        script.write_text(self.assert_runs("completion", "zsh").stdout)
        if not shutil.which("zsh"):
            self.skipTest("zsh is not here")
        checked = subprocess.run(["zsh", "-n", script], capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        (self.folder / "image one.mha").touch()
        expected = {
            "med": "median ", "plan fill": "plan fill-holes ", "median --bou": "median --boundary ",
            "median --boundary z": "median --boundary zero-flux ", "plan maximum --element bo": "plan maximum --element box ",
            "median ima": "median image\\ one.mha ", "median --radius 1 ima": "median --radius 1 image\\ one.mha ",
            "network --model ima": "network --model image\\ one.mha ", "devices --j": "devices --json ",
            "completion b": "completion bash ", "entropy --range a": "entropy --range auto ",
            # Completion goes as far as all matching words agree.
            "regio": "regional-m", "median --boundary zzz": "median --boundary zzz",
        }
        found = self.complete_in_zsh(["chunkwise " + line for line in expected])
        self.assertEqual(found, ["chunkwise " + line for line in expected.values()])

    def test_the_manual_page_has_no_errors(self):
        page = self.folder / "chunkwise.1"
        page.write_text(self.assert_runs("man").stdout)
        tools = [t for t in (["man", "--warnings", "-E", "UTF-8", "-l"], ["mandoc", "-Tlint", "-Wwarning"]) if shutil.which(t[0])]
        if not tools:
            self.skipTest("neither man nor mandoc is here")
        for tool in tools:
            with self.subTest(tool=tool[0]):
                shown = subprocess.run([*tool, page], capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat"})
                said = [line for line in (shown.stderr + (shown.stdout if tool[0] == "mandoc" else "")).splitlines()
                        if "missing date" not in line]
                self.assertEqual(said, [])

    def test_scripts_of_fiji_in_groovy(self):
        """Parsed all, and some run in ImageJ's own classes."""
        libraries = sorted(Path("/usr/share/java").glob("ij-1*.jar"))
        if not shutil.which("groovy") or not libraries:
            self.skipTest("groovy or imagej is not here")
        scripts, temporary = self.folder / "scr'ipts", self.folder / "temporary"
        temporary.mkdir()
        self.assert_runs("fiji-scripts", scripts)
        shown = subprocess.run(
            ["groovy", "-cp", str(libraries[0]), str(Path(__file__).resolve().parents[1] / "fijiScripts.groovy"), scripts, self.folder],
            capture_output=True, text=True, timeout=HANGS,
            env={**os.environ, "JAVA_OPTS": f"-Djava.awt.headless=true -Djava.io.tmpdir={temporary}"})
        self.assertEqual(shown.returncode, 0, shown.stderr[-2000:])
        self.assertIn("--radius", shown.stdout)
        self.assertIn("left: []", shown.stdout)
        values = [(i * 37 + z * 101) % 251 for z in range(7) for i in range(72)]
        image = support.Image((9, 8, 7), "uint8", values, spacing=[0.5, 1.0, 2.0])
        source = write(self.folder / "in.mha", image)
        self.assert_runs("median", source, self.out, "--radius=1,2,1", "--boundary=mirror")
        for bits in (8, 16, 32):
            header, *found = (self.folder / f"median-{bits}").read_text().split("\n")[:-1]
            self.assertEqual(header, f"{bits} 9 8 7 2.0")
            self.assertEqual(list(map(float, found)), [float(v) for v in read(self.out).values])
        header, *found = (self.folder / "reconstruct").read_text().split("\n")[:-1]
        self.assertEqual(len(found), len(values))
        self.assertTrue(all(float(f) <= v for f, v in zip(found, values)))
        self.assertGreater(sum(map(float, found)), sum(v // 2 for v in values) * 0.5)

    def test_no_device_is_touched_before_the_arguments_are_read(self):
        """Looking for devices opens the driver's library, or asks for the module; descriptions do neither."""
        if not shutil.which("strace"):
            self.skipTest("strace is not here")
        log = self.folder / "log"
        result = run("--xml", "median", before=("strace", "-f", "-e", "trace=openat", "-o", log))
        self.assertEqual(result.returncode, 0, str(result))
        self.assertNotRegex(log.read_text(), r"libcuda|libnvidia|/dev/nvidia|libChunkwiseCuda")
