# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""From store to store."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import _blocks, _states, filters

zarr = pytest.importorskip("zarr")

if not hasattr(zarr, "create_array"):
    pytest.skip("zarr-python 3 is not here", allow_module_level=True)


def make_source(path, image, chunks=(8, 16, 16), **given):
    source = zarr.create_array(str(path), shape=image.shape, chunks=chunks, dtype=image.dtype, **given)
    source[...] = image
    return source


class Counting:
    """A source that counts what is read of it."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.chunks = array, array.shape, array.dtype, (8, 16, 16)
        self.counts = np.zeros(array.shape, "int64")

    def __getitem__(self, where):
        self.counts[where] += 1
        return self.array[where]


@pytest.mark.parametrize("given", [{"zarr_format": 2}, {"zarr_format": 3}, {"zarr_format": 3, "shards": (16, 32, 32)}],
                         ids=str)
@pytest.mark.parametrize("filter", [
    filters.Gaussian(sigma=2.0), filters.Median(radius=1), filters.Sat(), filters.Mean(radius=3, mode="wrap"),
    filters.Gaussian(sigma=1.0) | filters.Range(radius=2)], ids=repr)
def test_gives_the_bits_of_the_whole(random, tmp_path, given, filter):
    image = make_image(random, (70, 45, 50), "uint16")
    make_source(tmp_path / "in.zarr", image, **given)
    report = chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="32M")
    output = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    expected = filter(image)
    assert output.dtype == expected.dtype and np.array_equal(output[...], expected)
    assert output.chunks == (8, 16, 16) and output.metadata.zarr_format == given["zarr_format"]
    assert getattr(output, "shards", None) == given.get("shards")
    assert report.skipped == 0 and report.bytes_written == expected.nbytes
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]


def test_each_voxel_is_read_once(random, tmp_path):
    image = make_image(random, (100, 40, 50), "float32")
    source = Counting(image)
    output = zarr.create_array(str(tmp_path / "out.zarr"), shape=image.shape, chunks=(8, 16, 16), dtype="f4")
    f = filters.Gaussian(sigma=2.0)
    report = chunkwise.zarr.run(f, source, output, memory="32M")
    assert report.blocks > 4
    assert source.counts.min() == source.counts.max() == 1 and report.bytes_read == image.nbytes
    assert np.array_equal(output[...], f(image))


def test_a_small_memory_takes_smaller_blocks(random, tmp_path):
    image = make_image(random, (40, 150, 160), "float32")
    source = Counting(image)
    output = zarr.create_array(str(tmp_path / "out.zarr"), shape=image.shape, chunks=(8, 16, 16), dtype="f4")
    f = filters.Mean(radius=2)
    with pytest.raises(chunkwise.BudgetError, match="smaller chunks") as error:
        chunkwise.zarr.run(f, source, output, memory="16M")
    report = chunkwise.zarr.run(f, source, output, memory=2**24 + 2**20)
    assert report.blocks > 10
    assert source.counts.min() == 1 and source.counts.sum() < 1.7 * image.size
    assert np.array_equal(output[...], f(image))


@pytest.mark.parametrize("processors", [1, 16])
def test_the_memory_that_an_error_asks_for_is_enough(random, monkeypatch, processors):
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    image = make_image(random, (40, 90, 80), "uint16")
    f = filters.Mean(radius=2)
    for chunks in ((8, 16, 16), (20, 45, 80)):
        output = zarr.create_array(zarr.storage.MemoryStore(), shape=image.shape, chunks=chunks, dtype="u2")
        with pytest.raises(chunkwise.BudgetError) as error:
            chunkwise.zarr.run(f, image, output, memory=2**20)
        enough = int(re.search(r"need (\d+) bytes", str(error.value)).group(1))
        chunkwise.zarr.run(f, image, output, memory=enough)
        assert np.array_equal(output[...], f(image))


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the system does not tell the peak of a part of a run")
@pytest.mark.parametrize("shards", [None, (64, 128, 128)])
def test_the_process_grows_by_no_more_than_the_memory(tmp_path, shards):
    code = textwrap.dedent("""
        import os, sys, numpy as np, zarr, chunkwise
        from chunkwise import filters
        # As many encoders as there is memory for.
        os.cpu_count = lambda: 16
        shards = eval(sys.argv[3])
        def make(name, shape):
            made = zarr.create_array(name, shape=shape, chunks=(32, 64, 64) if shards else (32, 128, 128), dtype="u2",
                                     shards=shards)
            for z in range(0, shape[0], 64):
                made[z:z + 64] = np.random.default_rng(z).integers(0, 60000, (64, *shape[1:]), "u2")
            return name
        def run(source, memory):
            chunkwise.zarr.run(filters.Gaussian(sigma=2.0), source, source + ".out", memory=memory)
        def status(key):
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024
        if sys.argv[2] == "make":
            make(sys.argv[1], (128, 512, 512))
        else:
            # Modules and objects that are imported and made once count as Python's.
            run(make(sys.argv[1] + ".small", (64, 128, 128)), "64M")
            before = status("VmRSS")
            open("/proc/self/clear_refs", "w").write("5")
            run(sys.argv[1], "64M")
            print(status("VmHWM") - before)
    """)
    for step in ("make", "run"):
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "in.zarr"), step, repr(shards)], check=True,
                              text=True, stdout=subprocess.PIPE)
    # 64 MiB of voxels, and as much memory.
    assert 2**23 < int(done.stdout) <= 2**26


def test_a_killed_run_goes_on(random, tmp_path):
    image = make_image(random, (160, 64, 64), "uint16")
    make_source(tmp_path / "in.zarr", image, zarr_format=3, shards=(16, 32, 32))
    code = textwrap.dedent("""
        import os, signal, sys, chunkwise
        from chunkwise import filters
        def stop(fraction):
            if fraction > 0.5:
                os.kill(os.getpid(), signal.SIGKILL)
        chunkwise.zarr.run(filters.Gaussian(sigma=2.0), sys.argv[1], sys.argv[2], memory="32M", progress=stop)
    """)
    paths = [str(tmp_path / "in.zarr"), str(tmp_path / "out.zarr")]
    killed = subprocess.run([sys.executable, "-c", code, *paths], check=False)
    assert killed.returncode == -signal.SIGKILL
    journal = tmp_path / "out.zarr.chunkwise-journal"
    assert len(journal.read_text().splitlines()) > 2
    with open(journal, "a") as file:
        file.write("[[0, 1")
    f = filters.Gaussian(sigma=2.0)
    with pytest.raises(ValueError, match="another run"):
        chunkwise.zarr.run(filters.Gaussian(sigma=2.5), *paths, memory="32M")
    report = chunkwise.zarr.run(f, *paths, memory="64M")
    assert 0 < report.skipped < report.blocks
    assert np.array_equal(zarr.open(paths[1], mode="r")[...], f(image))
    assert not journal.exists()
    with pytest.raises(FileExistsError):
        chunkwise.zarr.run(f, *paths)
    chunkwise.zarr.run(filters.Identity(), *paths, overwrite=True)
    assert np.array_equal(zarr.open(paths[1], mode="r")[...], image)


@pytest.mark.parametrize("kind", ["zarr", "memmap"])
def test_a_run_does_not_go_on_with_another_source(random, tmp_path, monkeypatch, kind):
    image = make_image(random, (64, 32, 32), "uint16")

    def source():
        if kind == "zarr":
            return zarr.open(str(tmp_path / "in.zarr"), mode="r")
        return np.memmap(tmp_path / "in.raw", "uint16", "r", shape=image.shape)

    make_source(tmp_path / "in.zarr", image)
    image.tofile(tmp_path / "in.raw")
    journal = tmp_path / "out.zarr.chunkwise-journal"
    f = filters.Mean(radius=1)

    def stop(fraction):
        if fraction > 0.4:
            raise KeyboardInterrupt

    def run(**given):
        return chunkwise.zarr.run(f, source(), tmp_path / "out.zarr", memory="20M", **given)

    with pytest.raises(KeyboardInterrupt):
        run(progress=stop)
    before = journal.read_text()
    assert len(before.splitlines()) > 1
    # The same bytes written anew have another time; one chunk is enough.
    if kind == "zarr":
        made = zarr.open(str(tmp_path / "in.zarr"), mode="r+")
        made[:8, :16, :16] = made[:8, :16, :16] + 1
        image = made[...]
    else:
        image[:8] += 1
        image.tofile(tmp_path / "in.raw")
    with pytest.raises(ValueError, match="contents of the source differ"):
        run()
    assert journal.read_text() == before
    monkeypatch.setattr(chunkwise._store_runs, "__version__", "0.0.1")
    with pytest.raises(ValueError, match="version, contents of the source|contents of the source, version"):
        run()
    monkeypatch.undo()
    journal.write_text("nonsense\n")
    with pytest.raises(ValueError, match="unreadable"):
        run()
    report = run(resume=False, overwrite=True)
    assert report.skipped == 0
    assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], f(image))


def test_no_layer_of_chunks_is_read_twice(random, tmp_path):
    image = make_image(random, (100, 32, 32), "uint16")

    class Layers(Counting):
        def __init__(self, array):
            super().__init__(array)
            self.visits = np.zeros(-(-array.shape[0] // 8), "int64")

        def __getitem__(self, where):
            self.visits[where[0].start // 8 : -(-where[0].stop // 8)] += 1
            return super().__getitem__(where)

    for filter in (filters.Mean(radius=3), filters.Sat()):
        source = Layers(image)
        report = chunkwise.zarr.run(filter, source, tmp_path / "out.zarr", memory="24M", overwrite=True)
        assert report.blocks > 3 and (source.visits == 1).all() and (source.counts == 1).all()
        assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], filter(image))


def test_an_output_may_keep_what_it_is_given(random):
    image = make_image(random, (64, 32, 32), "uint8")

    class Keeping:
        shape, dtype, chunks = image.shape, image.dtype, (8, 16, 16)
        parts = []

        def __setitem__(self, where, data):
            self.parts.append((where, data))

    output, f = Keeping(), filters.Mean(radius=1)
    chunkwise.zarr.run(f, image, output, memory="24M")
    result = np.zeros_like(image)
    for where, data in output.parts:
        result[where] = data
    assert len(output.parts) == 32 and np.array_equal(result, f(image))


def test_an_error_ends_a_run(random, tmp_path):
    image = make_image(random, (64, 32, 32), "uint8")

    class Failing(Counting):
        def __getitem__(self, where):
            if where[0].start > 20:
                raise OSError("the disk is gone")
            return super().__getitem__(where)

    class Full:
        shape, dtype, chunks = image.shape, image.dtype, (8, 16, 16)

        def __setitem__(self, where, data):
            raise OSError("no space left")

    with pytest.raises(OSError, match="disk is gone"):
        chunkwise.zarr.run(filters.Mean(radius=1), Failing(image), tmp_path / "out.zarr", memory="24M")
    with pytest.raises(OSError, match="no space"):
        chunkwise.zarr.run(filters.Mean(radius=1), Counting(image), Full(), memory="24M")
    with pytest.raises(KeyError):
        chunkwise.zarr.run(filters.Mean(radius=1), Counting(image), np.empty_like(image), memory="24M",
                           progress=lambda fraction: {}["no"])


@pytest.mark.parametrize("version", [2, 3])
def test_ome_zarr(random, tmp_path, version):
    image = make_image(random, (2, 20, 24, 28), "uint16")
    scale = [1.0, 2.0, 0.5, 0.5]
    axes = [{"name": "c", "type": "channel"}, *({"name": each, "type": "space", "unit": "micrometer"} for each in "zyx")]
    scales = [{"axes": axes, "datasets": [
        {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale}]},
        {"path": "1", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 4.0, 1.0, 1.0]}]}]}]
    metadata = {"multiscales": scales} if version == 2 else {"ome": {"version": "0.5", "multiscales": scales}}
    zarr.open_group(str(tmp_path / "in.zarr"), mode="w", zarr_format=version, attributes=metadata)
    make_source(tmp_path / "in.zarr/0", image, (1, 8, 16, 16), zarr_format=version)
    f = filters.Gaussian(sigma=1.0)
    chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="64M")
    output = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    expected = np.stack([chunkwise.gaussian(each, sigma=1.0, spacing=scale[1:]) for each in image])
    assert np.array_equal(output["0"][...], expected)
    ome = dict(output.attrs)
    found = (ome["ome"] if version == 3 else ome)["multiscales"][0]
    assert found["axes"] == axes and [each["path"] for each in found["datasets"]] == ["0"]


@pytest.mark.parametrize("version", (2, 3))
def test_labels_come_into_a_store_that_is_there(random, tmp_path, version):
    image = make_image(random, (20, 24, 28), "uint8") // 200
    axes = [{"name": each, "type": "space"} for each in "zyx"]
    scales = [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 1.0, 1.0]}]}]}]
    metadata = {"multiscales": scales, "omero": {"channels": []}}
    metadata = metadata if version == 2 else {"ome": {"version": "0.5", **metadata}}
    store = tmp_path / "in.ome.zarr"
    zarr.open_group(str(store), mode="w", zarr_format=version, attributes=metadata)
    make_source(store / "0", image, (8, 16, 16), zarr_format=version)
    zarr.consolidate_metadata(store)
    label = filters.Label(connectivity=1)
    for name, pyramid in (("b", None), ("a", "mode"), ("b", None)):
        chunkwise.zarr.run(label, store, store / "labels" / name, memory="64M", overwrite=True, pyramid=pyramid)
    chunkwise.zarr.separate(store, store / "labels" / "c", lower=1, memory="64M")
    group = zarr.open_group(str(store), mode="r", use_consolidated=True)

    def ome(node):
        attributes = dict(node.attrs)
        return attributes["ome"] if version == 3 else attributes

    assert ome(group["labels"])["labels"] == ["b", "a", "c"]
    for name in ("a", "b"):
        about = ome(group[f"labels/{name}"])
        assert about["image-label"]["source"] == {"image": "../../"} and "omero" not in about
        assert about["multiscales"][0]["datasets"][0] == scales[0]["datasets"][0]
        np.testing.assert_array_equal(group[f"labels/{name}/0"][...], chunkwise.label(image, connectivity=1))
    assert ome(group) == (metadata if version == 2 else metadata["ome"])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.ome.zarr"]
    with pytest.raises(chunkwise.ParameterError, match="integers, not float32"):
        chunkwise.zarr.run(filters.Gaussian(sigma=1.0), store, store / "labels" / "d", dtype="float32")
    with pytest.raises(chunkwise.ParameterError, match="'mode' does not"):
        chunkwise.zarr.run(label, store, store / "labels" / "d", pyramid="mean")
    with pytest.raises(chunkwise.ParameterError, match="no image of OME-Zarr"):
        chunkwise.zarr.run(label, store / "0", store / "labels" / "d")
    assert not (store / "labels" / "d").exists()


def test_what_cannot_be_done_is_said(random, tmp_path):
    image = make_image(random, (16, 16, 16), "uint8")
    source = make_source(tmp_path / "in.zarr", image)
    with pytest.raises(ValueError, match="it is the source"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, source)
    with pytest.raises(ValueError, match="it is the source"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, zarr.open(str(tmp_path / "in.zarr"), mode="r+"))
    with pytest.raises(ValueError, match="is the source"):
        chunkwise.zarr.run(filters.Mean(radius=1), tmp_path / "in.zarr", tmp_path / "in.zarr", overwrite=True)
    with pytest.raises(ValueError, match="is the source"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, tmp_path, overwrite=True)
    assert np.array_equal(source[...], image)
    with pytest.raises(TypeError, match="needs the image"):
        chunkwise.zarr.run(filters.Difference(), source, tmp_path / "out.zarr")
    with pytest.raises(TypeError, match="takes 1 images, 2 are given"):
        chunkwise.zarr.run(filters.Label(), source, tmp_path / "out.zarr", others=[source])
    mask = make_source(tmp_path / "mask.zarr", image)
    with pytest.raises(ValueError, match="it is the mask"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, mask, others=[mask])
    with pytest.raises(ValueError, match="is the mask"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, tmp_path / "mask.zarr", others=[mask], overwrite=True)
    small = make_source(tmp_path / "small.zarr", image[1:])
    with pytest.raises(ValueError, match="mask: its shape is"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, tmp_path / "out.zarr", others=[small])
    with pytest.raises(ValueError, match="radius"):
        chunkwise.zarr.run(filters.Mean(radius=-1), source, tmp_path / "out.zarr")
    with pytest.raises(TypeError, match="output="):
        chunkwise.mean(source, 1)
    with pytest.raises(ValueError, match="memory"):
        chunkwise.zarr.run(filters.Mean(radius=1), source, tmp_path / "out.zarr", memory="lots")
    assert not (tmp_path / "out.zarr").exists()
    output = zarr.create_array(str(tmp_path / "out.zarr"), shape=(16, 16, 16), chunks=(8, 8, 8), dtype="u1")
    assert chunkwise.mean(source, 1, output=output) is output
    assert np.array_equal(output[...], chunkwise.mean(image, 1))


@pytest.mark.parametrize("driver", ["zarr3", "zarr", "n5"])
def test_handles_of_tensorstore(random, tmp_path, driver):
    ts = pytest.importorskip("tensorstore")
    image = make_image(random, (40, 30, 50), "uint16")

    def make(name):
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/{name}/"}}
        layout = ts.ChunkLayout(chunk_shape=(8, 16, 16))
        return ts.open(spec, create=True, dtype=ts.uint16, shape=image.shape, chunk_layout=layout).result()

    source, output = make("in"), make("out")
    source.write(image).result()
    f = filters.Gaussian(sigma=2.0)
    chunkwise.zarr.run(f, source, output, memory="32M")
    assert np.array_equal(output.read().result(), f(image))
    chunkwise.zarr.run(f, source, tmp_path / "path.zarr", memory="32M")
    assert np.array_equal(zarr.open(str(tmp_path / "path.zarr"), mode="r")[...], f(image))
    journal = tmp_path / "journal"
    with pytest.raises(KeyboardInterrupt):
        chunkwise.zarr.run(f, source, output, memory="18M", journal=journal, progress=interrupt)
    source[0, 0, 0].write(int(image[0, 0, 0]) ^ 1).result()
    with pytest.raises(ValueError, match="contents of the source"):
        chunkwise.zarr.run(f, source, output, memory="18M", journal=journal)
    with pytest.raises(ValueError, match="begins at"):
        chunkwise.zarr.run(f, source[10:], output, memory="32M")


def interrupt(fraction):
    if fraction > 0.3:
        raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("filter", ["Gaussian(sigma=2.0)", "Sat()"])
def test_a_run_that_was_killed_as_it_began_begins_anew(random, tmp_path, when, filter):
    image = make_image(random, (40, 32, 32), "uint16")
    make_source(tmp_path / "in.zarr", image)
    code = textwrap.dedent(f"""
        import os, signal, sys, chunkwise.zarr
        from chunkwise import filters
        make = chunkwise._store_runs.create
        def create(*given):
            if {when!r} == "after":
                make(*given)
            os.kill(os.getpid(), signal.SIGKILL)
        chunkwise._store_runs.create = create
        chunkwise.zarr.run(filters.{filter}, sys.argv[1], sys.argv[2], memory="32M")
    """)
    paths = [str(tmp_path / "in.zarr"), str(tmp_path / "out.zarr")]
    killed = subprocess.run([sys.executable, "-c", code, *paths], check=False)
    assert killed.returncode == -signal.SIGKILL
    f = eval(filter, vars(filters))
    assert chunkwise.zarr.run(f, *paths, memory="32M").skipped == 0
    assert np.array_equal(zarr.open(paths[1], mode="r")[...], f(image))
    assert not (tmp_path / "out.zarr.chunkwise-journal").exists()


def test_two_runs_do_not_write_one_output(random, tmp_path):
    image = make_image(random, (40, 32, 32), "uint16")
    make_source(tmp_path / "in.zarr", image)
    f = filters.Mean(radius=1)
    tried = []

    def second(fraction):
        if not tried:
            for given in ({}, {"overwrite": True}, {"resume": False, "overwrite": True}):
                with pytest.raises(chunkwise.Error, match="another run is writing there"):
                    chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="32M", **given)
                tried.append(given)

    chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="32M", progress=second)
    assert len(tried) == 3
    assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], f(image))
    with pytest.raises(FileExistsError):
        chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="32M")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]


def test_a_run_goes_on_with_another_memory(random, tmp_path, monkeypatch):
    image = make_image(random, (64, 96, 96), "uint16")
    make_source(tmp_path / "in.zarr", image)
    f = filters.Gaussian(sigma=2.0)
    chosen = []
    choose = _blocks.Blocks._choose

    def note(*given):
        chosen.append(choose(*given))
        return chosen[-1]

    monkeypatch.setattr(_blocks.Blocks, "_choose", note)
    # The last run of each size begins where the ones before it ended.
    for memories in (("64M", "17M"), ("17M", "64M"), ("64M", "17M", "64M", "17M")):
        for memory in memories[:-1]:
            with pytest.raises(KeyboardInterrupt):
                chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory=memory, progress=interrupt)
        report = chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory=memories[-1])
        resumed = chosen[-1]
        assert report.skipped > 0
        assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], f(image))
        chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "anew.zarr", memory=memories[-1], overwrite=True)
        if memories[-1] == "17M":
            assert np.prod(resumed) <= np.prod(chosen[-1])
        chunkwise.zarr.run(f, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="32M", overwrite=True)
        for each in tmp_path.glob("out.zarr*"):
            subprocess.run(["rm", "-r", str(each)], check=True)


@pytest.mark.parametrize("chunks", [(8, 32, 32), (5, 96, 17)])
def test_labels_are_those_of_the_whole(random, tmp_path, chunks):
    image = (random.random((120, 130, 140)) < 0.4).astype("uint8")
    make_source(tmp_path / "in.zarr", image, chunks)
    filter = filters.Label(connectivity=2)
    with pytest.raises(MemoryError):
        chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="17M")
    # Too little for the image, which is read twice then.
    report = chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", memory="22M")
    output = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    assert np.array_equal(output[...], filter(image)) and output.chunks == chunks
    assert report.blocks > 1 and report.bytes_read == 2 * image.nbytes and report.bytes_written == output.nbytes


def objects(random):
    """Heights, markers, and a mask, of three types."""
    heights = make_image(random, (480, 24, 30), "uint16")
    markers = np.where(random.random(heights.shape) < 0.0005, np.arange(heights.size).reshape(heights.shape) % 251 + 1, 0).astype("uint32")
    return heights, markers, (random.random(heights.shape) < 0.9)


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("with_markers", [False, True])
def test_watersheds_of_large_images_are_those_of_the_whole(random, tmp_path, with_markers, with_mask):
    heights, markers, mask = objects(random)
    make_source(tmp_path / "in.zarr", heights)
    make_source(tmp_path / "markers.zarr", markers, (16, 16, 16))
    make_source(tmp_path / "mask.zarr", mask, (30, 24, 20))
    filter = filters.Watershed() if with_markers else filters.Watershed(height=3000)
    others = [tmp_path / "markers.zarr" if with_markers else None, tmp_path / "mask.zarr" if with_mask else None]
    # Enough for blocks, too little for the image.
    memory = 2**24 + (24 + 2 * with_mask) * 2**17
    report = chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", others=others, memory=memory)
    expected = filter(heights, markers if with_markers else None, mask if with_mask else None)
    output = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    assert output.dtype == expected.dtype and np.array_equal(output[...], expected)
    # It is read twice then.
    images = heights.nbytes + with_markers * markers.nbytes + with_mask * mask.nbytes
    assert report.bytes_read == 2 * images and report.blocks > 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.zarr", "markers.zarr", "mask.zarr", "out.zarr"]


@pytest.mark.parametrize("filter, others", [
    (filters.Distance(), []), (filters.FillHoles(), []), (filters.Reconstruct(), ["marker"]), (filters.Mean(radius=2), ["mask"]),
    (filters.Difference(), ["marker"]), (filters.Deconvolve(np.ones((3, 3, 3)), number_of_iterations=2), [None, "mask"])],
    ids=lambda each: repr(each)[:12])
def test_several_images_and_passes_give_the_bits_of_the_whole(random, tmp_path, filter, others):
    image = make_image(random, (48, 60, 70), "float32" if filter.name == "deconvolve" else "uint8")
    if filter.name == "distance":
        image = (image > 200).astype("uint8")
    given = {"marker": np.minimum(image, make_image(random, image.shape, "uint8")),
             "mask": (random.random(image.shape) < 0.8).astype(image.dtype)}
    for name, array in (("in", image), *given.items()):
        make_source(tmp_path / f"{name}.zarr", array)
    memory = "50M" if filter.name == "deconvolve" else 2**24 + 2**20 if filter.name == "distance" else 2**24 + 2**19
    report = chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", memory=memory,
                                others=[each and tmp_path / f"{each}.zarr" for each in others])
    expected = filter(image, *(given.get(each) for each in others))
    output = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    assert output.dtype == expected.dtype and np.array_equal(output[...], expected)
    assert report.blocks > 1 or filter.name in ("deconvolve", "fill-holes")


def test_a_deconvolution_goes_on_behind_its_last_state(random, tmp_path, monkeypatch):
    monkeypatch.setattr(_states, "_LEAST_PAUSE", 0)
    monkeypatch.setattr(_states, "_PAUSES_OF_KEEPING", 0)
    image = make_image(random, (40, 48, 50), "float32")
    make_source(tmp_path / "in.zarr", image)
    paths = (tmp_path / "in.zarr", tmp_path / "out.zarr")
    state = tmp_path / "out.zarr.chunkwise-journal.state"
    kernel = np.ones((3, 3, 5))

    def make(iterations, **given):
        return filters.Deconvolve(kernel, number_of_iterations=iterations, accelerate=True, **given)

    def run(f, **given):
        return chunkwise.zarr.run(f, *paths, memory="50M", **given)

    for where in (0.3, 0.6):
        def end(fraction):
            if fraction > where:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(make(8), progress=end)
    content = state.read_bytes()
    for wrong in (make(8, background=1), filters.Deconvolve(kernel + 1, number_of_iterations=8, accelerate=True)):
        with pytest.raises(ValueError, match="filter"):
            run(wrong)
    with pytest.raises(chunkwise.ParameterError, match="number_of_iterations"):
        run(make(2))
    for damaged in (b"", content[:-1], content[:5], content + b"1", content[:99] + bytes([content[99] ^ 1]) + content[100:],
                    content[:-9] + b"\xff" + content[-8:]):
        state.write_bytes(damaged)
        with pytest.raises(chunkwise.Error, match="is damaged"):
            run(make(8))
    state.write_bytes(content)
    report = run(make(9))
    assert 3 <= report.iterations_done < 8
    assert np.array_equal(zarr.open(str(paths[1]), mode="r")[...], make(9)(image))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]
    # Without one to go on with there is none afterwards.
    with pytest.raises(KeyboardInterrupt):
        run(make(8), overwrite=True, progress=end)
    assert state.exists()
    assert run(make(2), resume=False, overwrite=True).iterations_done == 0
    assert np.array_equal(zarr.open(str(paths[1]), mode="r")[...], make(2)(image)) and not state.exists()


def test_automatic_values_and_separate_are_those_of_the_whole(random, tmp_path):
    """Three runs, of which the first one reads the image twice."""
    z, y, x = np.ogrid[:40, :96, :100]
    image = sum(900 * np.exp(-((z - 20) ** 2 + (y - a) ** 2 + (x - b) ** 2) / 60.0)
                for a, b in random.integers(10, 90, (40, 2))).astype("uint16")
    make_source(tmp_path / "in.zarr", image)
    threshold = filters.Threshold("otsu")
    with pytest.raises(chunkwise.BudgetError) as error:
        chunkwise.zarr.run(threshold, tmp_path / "in.zarr", tmp_path / "mask.zarr", memory="16M")
    enough = int(re.search(r"need (\d+) bytes", str(error.value)).group(1))
    chunkwise.zarr.run(threshold, tmp_path / "in.zarr", tmp_path / "mask.zarr", memory=enough)
    assert np.array_equal(zarr.open(str(tmp_path / "mask.zarr"), mode="r")[...], threshold(image))
    fractions = []
    report = chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "out.zarr", spacing=(2, 1, 1), memory="30M",
                                     progress=fractions.append)
    output = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    expected = chunkwise.separate(image, spacing=(2, 1, 1))
    assert expected.max() > 4 and np.array_equal(output[...], expected) and report.bytes_written == output.nbytes
    assert fractions == sorted(fractions) and fractions[-1] == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.zarr", "mask.zarr", "out.zarr"]
    with pytest.raises(FileExistsError):
        chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "out.zarr")
    chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "out.zarr", area=1000, spacing=(2, 1, 1), memory="50M", overwrite=True)
    by_area = chunkwise.separate(image, area=1000, spacing=(2, 1, 1))
    assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], by_area)
    assert 1 < by_area.max() != chunkwise.separate(image, area=1000).max()
    with pytest.raises(ValueError, match="is the source"):
        chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "in.zarr", overwrite=True)
    source = zarr.open(str(tmp_path / "in.zarr"), mode="r+")
    with pytest.raises(ValueError, match="is the source"):
        chunkwise.zarr.separate(source, source)
    assert np.array_equal(source[...], image)
    # Before any voxel is read.
    unread = Counting(image)
    for name, wrong in (("height", -1), ("area", -1), ("connectivity", 4), ("output", "complex64")):
        with pytest.raises((ValueError, TypeError), match=name):
            chunkwise.zarr.separate(unread, tmp_path / "other.zarr", **{name.replace("output", "dtype"): wrong})
    assert unread.counts.max() == 0 and not (tmp_path / "other.zarr").exists()


def test_separate_says_before_its_first_run_what_is_enough_for_all_three(random, tmp_path):
    image = make_image(random, (8, 256, 256), "uint16")
    make_source(tmp_path / "in.zarr", image, (4, 64, 64))
    with pytest.raises(chunkwise.BudgetError) as error:
        chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "out.zarr", memory="17M", threads=2)
    enough = error.value.needed
    assert str(enough) in str(error.value) and not (tmp_path / "out.zarr").exists()
    chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "out.zarr", memory=enough)
    assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], chunkwise.separate(image))
    with pytest.raises(chunkwise.BudgetError):
        chunkwise.zarr.separate(tmp_path / "in.zarr", tmp_path / "out.zarr", memory=int(0.7 * enough), overwrite=True)


def test_labels_are_filtered_and_filled_from_store_to_store(random, tmp_path):
    for shape, chunks, dtype in (((21, 40, 44), (4, 16, 16), "uint16"), ((90, 50), (16, 16), "int64"), ((300,), (64,), "bool")):
        labels = random.integers(0, 50, shape).astype(dtype)
        for axis in range(labels.ndim):
            labels = np.where(random.random(shape) < 0.7, np.roll(labels, 1, axis), labels)
        if dtype == "int64":
            labels = np.where(labels == 7, -(2**60), labels)
        labels[tuple(slice(9, 12) for _ in shape)], labels[(10,) * labels.ndim] = 1, 0
        source, output = tmp_path / "in.zarr", tmp_path / "out.zarr"
        if source.exists():
            shutil.rmtree(source)
        make_source(source, labels, chunks)
        for chosen in ({"min_size": 300}, {"where": "bbox-0 <= 1", "keep_largest": 4, "relabel": True}, {"remove_border": True},
                       {"replace": {1: 2, 4: 0} if dtype != "bool" else {1: 0}, "max_size": 900}):
            expected = chunkwise.filter_labels(labels, **chosen)
            fractions = []
            kept = chunkwise.zarr.filter_labels(source, output, memory="200K" if labels.ndim == 2 else "3M", overwrite=True,
                                                progress=fractions.append, **chosen)
            found = zarr.open(str(output), mode="r")
            assert found.dtype == labels.dtype and found.chunks == chunks
            assert np.array_equal(found[...], expected), (shape, chosen)
            assert kept == len(np.unique(expected[expected != 0])) and fractions == sorted(fractions) and fractions[-1] == 1
        filled = chunkwise.zarr.fill_label_holes(source, output, memory="20M", overwrite=True)
        expected = chunkwise.fill_label_holes(labels)
        assert np.array_equal(zarr.open(str(output), mode="r")[...], expected)
        assert filled > 0 or labels.ndim == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]
    given = np.empty(labels.shape, labels.dtype)
    chunkwise.zarr.filter_labels(labels, given, min_size=3)
    assert np.array_equal(given, chunkwise.filter_labels(labels, min_size=3))
    for function in (chunkwise.zarr.filter_labels, chunkwise.zarr.fill_label_holes):
        with pytest.raises(FileExistsError):
            function(source, output)
        with pytest.raises(ValueError, match="is the source"):
            function(source, source, overwrite=True)
        with pytest.raises(ValueError, match="output: its shape"):
            function(labels, np.empty(7, bool))
        with pytest.raises(ValueError, match="output: its type"):
            function(labels, np.empty(labels.shape, "uint8"))
        with pytest.raises(ValueError, match="labels: float32"):
            function(np.zeros(3, "float32"), tmp_path / "other.zarr")
        with pytest.raises(TypeError, match=f"chunkwise.zarr.{function.__name__}"):
            getattr(chunkwise, function.__name__)(zarr.open(str(source), mode="r"))
    with pytest.raises(ValueError, match="where"):
        chunkwise.zarr.filter_labels(source, tmp_path / "other.zarr", where="colour > 1")
    assert not (tmp_path / "other.zarr").exists()


def test_filtered_labels_have_the_lengths_of_ome_zarr(tmp_path):
    labels = np.zeros((6, 8, 9), "uint8")
    labels[1:3, 1:3, 1:3], labels[4:, 4:, 4:] = 1, 2
    group = zarr.open_group(str(tmp_path / "in.zarr"), mode="w", attributes={"ome": {"version": "0.5", "multiscales": [{
        "axes": [{"name": each, "type": "space"} for each in "zyx"],
        "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [4.0, 1.0, 1.0]}]}]}]}})
    group.create_array("0", data=labels, chunks=(2, 4, 4))
    assert chunkwise.zarr.filter_labels(tmp_path / "in.zarr", tmp_path / "out.zarr", where="area > 40") == 1
    found = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    assert np.array_equal(found["0"][...], np.where(labels == 2, 2, 0)) and "ome" in dict(found.attrs)
    ring = labels.copy()
    ring[5, 6, 6] = ring[1, 2, 2] = 0
    group["0"][...] = ring
    assert chunkwise.zarr.fill_label_holes(tmp_path / "in.zarr", tmp_path / "out.zarr", overwrite=True) == 0


def test_labels_keep_to_the_memory_or_say_what_is_enough(tmp_path):
    labels = np.arange(1, 1 + 64 * 64 * 64, dtype="uint32").reshape(64, 64, 64)
    labels[:, 1:-1:2, 1:-1:2] = 0
    make_source(tmp_path / "in.zarr", labels, (8, 64, 64))
    for function, chosen in ((chunkwise.zarr.filter_labels, {"min_size": 1, "relabel": True}), (chunkwise.zarr.fill_label_holes, {})):
        expected = getattr(chunkwise, function.__name__)(labels, **chosen)
        for tried in ("300K", "3M", "5M"):
            with pytest.raises(chunkwise.BudgetError) as error:
                function(tmp_path / "in.zarr", tmp_path / "out.zarr", memory=tried, overwrite=True, **chosen)
            assert str(error.value.needed) in str(error.value)
        needed = error.value.needed
        # Holes need memory for the parts of the background, and then for their tables.
        for _ in range(1 if function is chunkwise.zarr.filter_labels else 3):
            try:
                function(tmp_path / "in.zarr", tmp_path / "out.zarr", memory=needed, overwrite=True, **chosen)
                break
            except chunkwise.BudgetError as again:
                assert again.needed > needed
                needed = again.needed
        assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], expected)
        shutil.rmtree(tmp_path / "out.zarr")


def test_automatic_values_keep_to_the_memory(random, tmp_path):
    """A plane alone is more than the memory, and a column of it is not the image."""
    image = make_image(random, (2, 2400, 2400), "uint8")
    make_source(tmp_path / "in.zarr", image, (1, 300, 300))
    filter = filters.Threshold("otsu")
    chunkwise.zarr.run(filters.Threshold("fixed", lower=9), tmp_path / "in.zarr", tmp_path / "fixed.zarr", memory=2**24 + 2**22)
    with pytest.raises(chunkwise.BudgetError) as error:
        chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", memory=2**24 + 2**22)
    enough = int(re.search(r"need (\d+) bytes", str(error.value)).group(1))
    chunkwise.zarr.run(filter, tmp_path / "in.zarr", tmp_path / "out.zarr", memory=enough)
    assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"), mode="r")[...], filter(image))


def test_images_of_other_places_are_refused(random, tmp_path):
    image = make_image(random, (16, 16, 16), "uint8")
    paths = []
    for scale, moved in (([1.0] * 3, [4.0, 0.0, 2.0]), ([2.0] * 3, [4.0, 0.0, 2.0]), ([1.0] * 3, [4.0, 1.0, 2.0]), ([1.0], [4.0] * 3),
                         ([1.0] * 3, [4.0, 0.0, 2.0])):
        paths.append(tmp_path / f"{len(paths)}.zarr")
        group = zarr.open_group(str(paths[-1]), mode="w", attributes={"ome": {"version": "0.5", "multiscales": [{
            "axes": [{"name": name, "type": "space"} for name in "zyx"], "datasets": [{
                "path": "0", "coordinateTransformations": [{"type": "scale", "scale": scale},
                                                           {"type": "translation", "translation": moved}]}]}]}})
        group.create_array("0", data=image, chunks=(8, 8, 8))
    f = filters.Mean(radius=1)
    for other, text in ((paths[1], "mask: its scale"), (paths[2], "mask: its translation"), (paths[3], "1 numbers, its array has 3 axes")):
        with pytest.raises(ValueError, match=text):
            chunkwise.zarr.run(f, paths[0], tmp_path / "out.zarr", others=[other])
        assert not (tmp_path / "out.zarr").exists()
    for other in (zarr.open(str(paths[1]))["0"], paths[4]):
        chunkwise.zarr.run(f, paths[0], tmp_path / "out.zarr", others=[other], overwrite=True)
        assert np.array_equal(zarr.open(str(tmp_path / "out.zarr"))["0"][...], f(image, image))
