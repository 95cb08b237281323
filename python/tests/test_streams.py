# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Python's functions as sources and sinks of the engine's streams."""
import os
import signal

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import _core, filters
from chunkwise._arrays import make_options
from chunkwise._regions import box_of, turn


def make_stream(filter, image, region=None, memory=2**26, least=1, units=((1, 1, 1), (1, 1, 1)), **options):
    kind, output = image.dtype.name, filter.default_dtype(image.dtype).name
    operation = filter._operation(image.shape, kind, output)
    lower, upper = box_of(region or tuple(slice(0, each) for each in image.shape))
    return _core.Stream(operation, [(kind, kind, turn(units[0]))], output, turn(image.shape), lower, upper, turn(units[1]), memory,
                        least, "", ("", ""), False, make_options(**options))


@pytest.mark.parametrize("filter", [filters.Gaussian(sigma=1.5), filters.Sat(), filters.Mean(radius=2, mode="wrap")], ids=repr)
def test_functions_read_and_write_whole_units(random, filter):
    image = make_image(random, (61, 17, 23), "uint16")
    result = np.zeros(image.shape, filter.default_dtype(image.dtype))
    reads, writes = [], []

    def read(where, array):
        assert array.flags.writeable and array.shape == image[where].shape
        array[...] = image[where]
        reads.append(where[0])

    def write(where, array):
        assert not array.flags.writeable
        result[where] = array
        writes.append(where)

    fractions = []
    stream = make_stream(filter, image, least=4, units=((6, 1, 1), (5, 1, 1)))
    report = stream.run([read], write, None, fractions.append)
    assert stream.needed == 0 and stream.overlaps and stream.blocks == len(writes) >= 4
    assert np.array_equal(result, filter(image)) and report["backend"]
    assert all(each[0].start % 5 == 0 and (each[0].stop % 5 == 0 or each[0].stop == 61) for each in writes)
    if not filter.parameters.get("mode"):
        assert sum(each.stop - each.start for each in reads) == 61
        assert all(each.stop % 6 == 0 or each.stop == 61 for each in reads)
    assert fractions == sorted(fractions) and fractions[-1] == 1


def test_a_region_is_a_part_of_the_whole(random):
    image = make_image(random, (40, 30, 20), "float32")
    f = filters.Median(radius=2)
    result = np.zeros_like(image)

    def read(where, array):
        array[...] = image[where]

    region = (slice(10, 30), slice(5, 25), slice(0, 20))
    make_stream(f, image, region, least=3, units=((1, 1, 1), (5, 1, 1))).run([read], result.__setitem__, None, None)
    assert np.array_equal(result[region], f(image)[region]) and np.count_nonzero(result) <= 20 * 20 * 20


@pytest.mark.parametrize("fails", ["read", "write", "progress", "signal"])
def test_what_functions_raise_comes_out_and_nothing_runs_afterwards(random, fails):
    image = make_image(random, (60, 20, 20), "uint8")
    ended = False
    late = []
    sent = []

    def step(name, where):
        if ended:
            late.append(name)
        if where is None or where[0].start > 20:
            if fails == "signal" and name == "read" and not sent:
                # A second one may come when the first one has just been caught.
                sent.append(name)
                os.kill(os.getpid(), signal.SIGINT)
            elif fails == name:
                raise OSError(f"{name} fails")

    def read(where, array):
        step("read", where)
        array[...] = image[where]

    # Shells start commands in the background with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt if fails == "signal" else OSError) as error:
            make_stream(filters.Mean(radius=1), image, least=60).run(
                [read], lambda where, array: step("write", where), None, lambda part: step("progress", None))
    finally:
        signal.signal(signal.SIGINT, before)
    ended = True
    assert fails == "signal" or str(error.value) == f"{fails} fails"
    result = np.zeros_like(image)
    make_stream(filters.Mean(radius=1), image).run([lambda where, array: np.copyto(array, image[where])], result.__setitem__, None, None)
    assert np.array_equal(result, chunkwise.mean(image, 1)) and not late


def test_a_memory_that_is_too_little_is_said():
    image = np.zeros((30, 200, 200), "float32")
    stream = make_stream(filters.Mean(radius=2), image, memory=2**18)
    assert stream.needed > 2**18
    with pytest.raises(chunkwise.BudgetError) as error:
        stream.run([print], print, None, None)
    assert error.value.needed == stream.needed
    assert make_stream(filters.Mean(radius=2), image, memory=stream.needed).needed == 0
