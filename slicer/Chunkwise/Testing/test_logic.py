# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The module's logic, without windows and without 3D Slicer: pytest, with CHUNKWISE_PROGRAM naming the program."""
import array
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ChunkwiseLib import logic  # noqa: E402

SIZE = (17, 13, 11)


def write(path, size=SIZE, seed=1):
    count = size[0] * size[1] * size[2]
    values = array.array("h", [(seed * 7919 * i * i + 31 * i) % 997 for i in range(count)])
    path.write_bytes((
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nCompressedData = False\n"
        "TransformMatrix = -1 0 0 0 -1 0 0 0 1\nOffset = 3 4 5\nElementSpacing = 0.5 0.75 1.5\n"
        f"DimSize = {size[0]} {size[1]} {size[2]}\nElementType = MET_SHORT\nElementDataFile = LOCAL\n").encode() + values.tobytes())
    return str(path)


def read(path):
    header, data = Path(path).read_bytes().split(b"ElementDataFile = LOCAL\n")
    fields = dict(line.split(" = ") for line in header.decode().splitlines() if " = " in line)
    values = array.array({"MET_SHORT": "h", "MET_FLOAT": "f", "MET_UCHAR": "B"}[fields["ElementType"]])
    values.frombytes(data)
    return [int(n) for n in fields["DimSize"].split()], [float(n) for n in fields["Offset"].split()], values


@pytest.fixture(scope="module")
def program():
    return logic.Program()


def test_filters_are_those_of_the_program(program):
    shown = program.ask("--help")
    assert len(program.filters) > 30
    for name, filter_ in program.filters.items():
        assert f"  {name} " in shown
        assert filter_.group in shown
        assert {p.flag for p in filter_.parameters} >= {"backend", "memory", "outputType"}
    radius = next(p for p in program.filters["median"].parameters if p.flag == "radius")
    assert (radius.kind, radius.default, radius.minimum, radius.advanced) == ("integer-vector", "1", 0, False)


def test_every_filter_runs_with_its_defaults(program, tmp_path):
    source = write(tmp_path / "in put.mha")
    for name, filter_ in program.filters.items():
        if any(p.is_file for p in filter_.parameters):
            continue
        result = str(tmp_path / f"{name}.mha")
        try:
            program.start(logic.Job([(name, {})], source, result)).wait()
        except logic.ChunkwiseError as error:
            assert "has no default" in str(error) or "must be given" in str(error), name
            continue
        # Bins have an eighth of the voxels.
        assert os.path.getsize(result) > SIZE[0] * SIZE[1] * SIZE[2] / 8


def test_values_become_the_command_line_that_is_shown(program, tmp_path):
    source, result = write(tmp_path / "it's in.mha"), str(tmp_path / "out.mha")
    values = {"radius": "2,1,0", "boundary": "constant", "constant": "-5"}
    job = logic.Job([("mean", values)], source, result, {"outputType": "float32", "memory": ""})
    program.start(job).wait()
    expected = Path(result).read_bytes()
    os.unlink(result)
    words = shlex.split(program.command_line(job))
    assert words[0] == "chunkwise"
    subprocess.run([program.path, *words[1:]], check=True)
    assert Path(result).read_bytes() == expected
    assert read(result)[2].typecode == "f"
    with pytest.raises(logic.ChunkwiseError, match="no parameter"):
        program.words(logic.Job([("mean", {"sigma": "1"})], source, result))


def test_a_preview_is_exactly_that_part_of_the_result(program, tmp_path):
    source, whole, part = write(tmp_path / "in.mha"), str(tmp_path / "whole.mha"), str(tmp_path / "part.mha")
    for steps in ([("median", {"radius": "2"})], [("gaussian", {"sigma": "1"})], [("fill-holes", {})],
                  [("mean", {"radius": "2"}), ("range", {"radius": "1"})]):
        program.start(logic.Job(steps, source, whole)).wait()
        size, offset, values = read(whole)
        for region in (logic.region_of_slice(SIZE, 2, 5), logic.region_of_slice(SIZE, 0, 16),
                       logic.region_of_bounds(SIZE, (2.2, -3.0, 4.0), (9.9, 5.0, 4.0))):
            program.start(logic.Job(steps, source, part, region=region)).wait()
            part_size, part_offset, part_values = read(part)
            begin, extent = region[:3], region[3:]
            assert part_size == extent
            assert list(part_values) == [
                values[x + size[0] * (y + size[1] * z)] for z in range(begin[2], begin[2] + extent[2])
                for y in range(begin[1], begin[1] + extent[1]) for x in range(begin[0], begin[0] + extent[0])]
            assert part_offset == pytest.approx(
                [offset[0] - 0.5 * begin[0], offset[1] - 0.75 * begin[1], offset[2] + 1.5 * begin[2]])


def test_regions():
    assert logic.region_of_slice((5, 6, 7), 1, 2) == [0, 2, 0, 5, 1, 7]
    assert logic.region_of_bounds((5, 6, 7), (3.5, 1, 9), (0.5, 1, -2)) == [1, 1, 0, 3, 1, 7]
    for wrong in (lambda: logic.region_of_slice((5, 6, 7), 1, 6), lambda: logic.region_of_slice((5, 6, 7), 1, -1),
                  lambda: logic.region_of_bounds((5, 6, 7), (5, 0, 0), (9, 1, 1)),
                  lambda: logic.region_of_bounds((5, 6, 7), (1.2, 0, 0), (1.8, 1, 1))):
        with pytest.raises(logic.ChunkwiseError):
            wrong()


def test_levels_of_stores(program, tmp_path):
    source = write(tmp_path / "in.mha", (600, 20, 10))
    for version in ("0.4", "0.5"):
        store = str(tmp_path / f"{version}.ome.zarr")
        program.ask("identity", source, store, "--zarr", f"{version},pyramid=mean,chunks=64x32x32,shards=none")
        assert logic.is_store(store) and not logic.is_store(source)
        assert logic.levels_of(store) == [os.path.join(store, "0"), os.path.join(store, "1"), os.path.join(store, "2")]
        assert program.image(store) == ([600, 20, 10], 240000)
        assert program.level_to_show(store, 240000) == os.path.join(store, "0")
        assert program.level_to_show(store, 239999) == os.path.join(store, "1")
        assert program.image(os.path.join(store, "1"))[0] == [300, 10, 5]
        with pytest.raises(logic.ChunkwiseError, match="no level of 0 MiB"):
            program.level_to_show(store, 100)
    assert logic.levels_of(str(tmp_path)) == [str(tmp_path)]
    assert logic.scale_region([10, 4, 0, 20, 1, 5], (300, 10, 5), (600, 20, 10)) == [20, 9, 0, 40, 1, 10]
    assert logic.scale_region([0, 0, 0, 1, 2, 3], (1, 2, 3), (2, 3, 5)) == [1, 0, 0, 1, 3, 5]


def test_sequences_are_kept_and_read_again(program, tmp_path):
    steps = [("gaussian", {"sigma": "1.5"}), ("std", {"radius": "2", "boundary": "mirror"})]
    job = logic.Job(steps, write(tmp_path / "in.mha"), str(tmp_path / "out.mha"), {"threads": "1"})
    assert logic.steps_from_json(job.to_json(), program.filters) == steps
    program.start(job).wait()
    assert read(job.result)[0] == list(SIZE)
    for text in ("", "[]", "{}", '{"steps": [["men", {}]]}', '{"steps": [["mean", {"sigma": "1"}]]}', '{"steps": 5}'):
        with pytest.raises(logic.ChunkwiseError):
            logic.steps_from_json(text, program.filters)
    with pytest.raises(logic.ChunkwiseError, match="no filter is chosen"):
        program.words(logic.Job([], job.source, job.result))


def test_groups_and_pages():
    def group(label, flag, attributes=""):
        return (f"<parameters{attributes}><label>{label}</label><description>d</description><string><name>{flag}</name>"
                f"<longflag>{flag}</longflag><description>h</description><label>L</label><default>7</default></string></parameters>")

    filter_ = logic.Filter.from_xml(
        "<executable><category>Filtering.Chunkwise.Group</category><title>Chunkwise name</title><description>d</description>"
        "<documentation-url>https://example.org/page#name</documentation-url>" + group("Parameters", "a")
        + group("Advanced parameters", "b", ' advanced="true"') + group("Machine", "c", ' advanced="true"') + "</executable>")
    assert filter_.page == "https://example.org/page#name"
    assert [(p.flag, p.advanced, p.is_of_machine) for p in filter_.parameters] == [
        ("a", False, False), ("b", True, False), ("c", True, True)]
    # A step of a sequence has what is advanced, and not what is of the machine.
    assert filter_.words({}, machine=False) == ["--a", "7", "--b", "7"]


def test_plans_are_the_planners(program, tmp_path):
    source = write(tmp_path / "in.mha")
    job = logic.Job([("median", {"radius": "1"})], source, str(tmp_path / "out.mha"))
    plan = program.plan(job)
    assert plan["input"]["extent"] == list(SIZE)
    assert "division" in logic.describe_plan(plan)
    with pytest.raises(logic.ChunkwiseError, match="--memory: .*needs"):
        program.plan(logic.Job(job.steps, source, job.result, {"memory": logic.memory_text(1 << 20)}))
    devices = program.devices()
    assert devices["cpu"]["memoryAvailable"] > 1 << 20
    assert not os.path.exists(job.result)


def test_progress_warnings_and_errors(program, tmp_path):
    seen = []
    source = write(tmp_path / "large.mha", (90, 90, 90))
    run = program.start(logic.Job([("median", {"radius": "5"})], source, str(tmp_path / "o.mha")), seen.append)
    assert run.wait() == []
    assert len(seen) > 1 and seen == sorted(seen)
    run = program.start(logic.Job([("identity", {})], source, str(tmp_path / "o.mha"), {"outputType": "uint8"}))
    assert "outside of uint8" in run.wait()[0]
    run = program.start(logic.Job([("median", {"radius": "-1"})], source, str(tmp_path / "o.mha")))
    with pytest.raises(logic.ChunkwiseError, match="--radius"):
        run.wait()


def test_cancel_leaves_nothing(program, tmp_path):
    source = write(tmp_path / "large.mha", (90, 90, 90))
    work = tmp_path / "work"
    work.mkdir()
    run = program.start(logic.Job([("nlm", {"radius": "9", "strength": "9"})], source, str(work / "o.mha"), {"threads": "1"}))
    while not list(work.iterdir()) and run.is_running():
        time.sleep(0.01)
    run.cancel()
    with pytest.raises(logic.ChunkwiseError, match="cancelled"):
        run.wait()
    assert list(work.iterdir()) == []


def test_batches(program, tmp_path):
    sources = [write(tmp_path / f"{i}.mha", seed=i) for i in (1, 2, 3)]
    (tmp_path / "2.mha").write_text("no image")
    job = logic.Job([("median", {"radius": "1"})], "", "")
    run = program.batch(job, sources, str(tmp_path / "out" / "{stem}.mha"))
    with pytest.raises(logic.ChunkwiseError, match="2.mha"):
        run.wait()
    assert sorted(p.name for p in (tmp_path / "out").glob("*.mha")) == ["1.mha", "3.mha"]


def write_labels(path, large=1):
    """A cube of label 7 with a hole, and three voxels of label 3, enlarged."""
    voxels = {(1, 1, 1): 3, (2, 1, 1): 3, (5, 5, 4): 3}
    voxels.update({(x, y, z): 7 for x in range(3, 6) for y in range(2, 5) for z in range(1, 4) if (x, y, z) != (4, 3, 2)})
    x_size, y_size, z_size = 8 * large, 7 * large, 6 * large
    values = array.array("h", [voxels.get((x // large, y // large, z // large), 0)
                               for z in range(z_size) for y in range(y_size) for x in range(x_size)])
    path.write_bytes((
        "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\nOffset = 0 0 0\n"
        f"DimSize = {x_size} {y_size} {z_size}\nElementType = MET_SHORT\nElementDataFile = LOCAL\n").encode() + values.tobytes())
    return str(path)


def test_operations_have_the_programs_flags(program):
    # Given by the window in another way, or for files that Slicer does not write.
    elsewhere = {"help", "json", "out", "raw", "untrusted", "divisions", "compress", "zarr", "overwrite"}
    assert not set(logic.OPERATIONS) & set(program.filters)
    for name, operation in logic.OPERATIONS.items():
        shown = program.ask(name, "--help")
        flags = set(re.findall(r"^ +(?:-h,)?--([\w-]+)", shown, re.MULTILINE))
        assert flags - elsewhere == {p.flag for p in operation.parameters if p.kind != "image"}, name
        assert len(re.findall(r"^  [A-Z]+ TEXT", shown, re.MULTILINE)) == (
            1 + (not operation.is_table) + sum(p.kind == "image" for p in operation.parameters))
        assert "progress" not in flags
        for p in operation.parameters:
            takes_no_value = re.search(rf"^ +--{p.flag}  ", shown, re.MULTILINE)
            assert bool(takes_no_value) == (p.kind == "boolean") or p.kind == "image"
        try:
            program.ask("plan", name, "--help")
        except logic.ChunkwiseError:
            assert not operation.is_planned
        else:
            assert operation.is_planned


def test_operations_are_the_programs(program, tmp_path):
    labels, intensity = write_labels(tmp_path / "la bels.mha"), str(tmp_path / "i.mha")
    program.ask("mean", labels, intensity, "--radius", "1")
    machine = {"memory": "200M", "backend": "cpu"}
    for name, values, options in (
            ("measure", {}, []),
            ("measure", {"intensity": intensity, "quantiles": "0.5", "columns": ""}, [intensity, "--quantiles", "0.5"]),
            ("measure", {"columns": "label,num_pixels"}, ["--columns", "label,num_pixels"]),
            ("filter-labels", {"min-size": "4", "relabel": "true", "remove-border": "false"}, ["--min-size", "4", "--relabel"]),
            ("filter-labels", {"where": "area > 2; extent < 0.5"}, ["--where", "area > 2", "--where", "extent < 0.5"]),
            ("fill-label-holes", {}, [])):
        ending = ".csv" if name == "measure" else ".mha"
        result, expected = str(tmp_path / ("out" + ending)), str(tmp_path / ("expected" + ending))
        job = logic.Job([(name, values)], labels, result, machine)
        plan = program.plan(job)
        assert plan is None if name == "fill-label-holes" else "read" in logic.describe_plan(plan)
        assert not os.path.exists(result)
        assert program.start(job).wait() == []
        program.ask(name, labels, *options, *(["--out", expected] if name == "measure" else [expected]))
        assert Path(result).read_bytes() == Path(expected).read_bytes()
        assert "--memory 200M" in program.command_line(job) and "--backend" not in program.command_line(job)
        os.unlink(result)
        os.unlink(expected)


def test_measures_rows_and_labels_voxels(program, tmp_path):
    labels, table, image = write_labels(tmp_path / "l.mha"), str(tmp_path / "t.CSV"), str(tmp_path / "o.mha")
    program.start(logic.Job([("measure", {"columns": "label,num_pixels,touches_border"})], labels, table)).wait()
    assert Path(table).read_text().splitlines() == ["label,num_pixels,touches_border", "3,3,0", "7,26,0"]
    program.start(logic.Job([("fill-label-holes", {})], labels, image)).wait()
    assert sorted(read(image)[2]) == [0] * (336 - 30) + [3] * 3 + [7] * 27
    program.start(logic.Job([("filter-labels", {"keep-largest": "1", "relabel": True})], labels, image)).wait()
    assert sorted(read(image)[2]) == [0] * (336 - 26) + [1] * 26


def test_operations_refuse_what_they_cannot_do(program, tmp_path):
    labels, result = write_labels(tmp_path / "l.mha"), str(tmp_path / "o.mha")

    def refused(message, steps, result=result, region=None):
        with pytest.raises(logic.ChunkwiseError, match=message):
            program.start(logic.Job(steps, labels, result, region=region)).wait()
        assert not os.path.exists(result)

    refused("the result of measure is a table", [("measure", {})])
    refused("no preview", [("fill-label-holes", {})], region=[0, 0, 0, 8, 7, 1])
    refused("cannot be a step of a sequence", [("median", {}), ("filter-labels", {"min-size": "2"})])
    refused("no parameter minsize", [("filter-labels", {"minsize": "2"})])
    refused("--min-size: '-4'", [("filter-labels", {"min-size": "-4"})])
    refused("--where: 'foo' is not a column", [("filter-labels", {"where": "foo > 3"})])
    with pytest.raises(logic.ChunkwiseError, match="one image at a time"):
        program.batch(logic.Job([("measure", {})], "", ""), [labels], str(tmp_path / "{stem}.csv"))
    text = logic.Job([("filter-labels", {"min-size": "2"})], "", "").to_json()
    assert logic.steps_from_json(text, program.commands) == [("filter-labels", {"min-size": "2"})]
    text = logic.Job([("measure", {}), ("mean", {})], "", "").to_json()
    with pytest.raises(logic.ChunkwiseError, match="cannot be a step of a sequence"):
        logic.steps_from_json(text, program.commands)


def test_a_missing_program_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv("CHUNKWISE_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(logic.ChunkwiseError, match="not found"):
        logic.Program()


def test_libraries_of_slicer_are_not_the_programs(program, monkeypatch, tmp_path):
    (tmp_path / "libstdc++.so.6").write_bytes(b"none")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert "chunkwise" in program.ask("--version")
