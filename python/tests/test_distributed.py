# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""On a cluster of processes, one of which is killed."""
import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest
from conftest import make_image

import chunkwise
from chunkwise import filters

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
zarr = pytest.importorskip("zarr")
da = pytest.importorskip("dask.array")


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None,
                                  silence_logs=50) as cluster, distributed.Client(cluster) as client:
        yield client


@contextlib.contextmanager
def losing_a_worker(client):
    """Kills one as soon as it has something to lose; there must have been one before the end."""
    pids = client.run(os.getpid)
    victims, is_over = [], threading.Event()

    def kill():
        while not victims and not is_over.is_set():
            busy = [address for address, keys in client.has_what().items() if keys and address in pids]
            if busy:
                victims.append(busy[0])
                os.kill(pids[busy[0]], signal.SIGKILL)
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        is_over.set()
        killer.join()
    assert victims


def test_a_lost_worker(random, tmp_path, client):
    image = make_image(random, (48, 64, 64), "float32")
    source = zarr.create_array(str(tmp_path / "in.zarr"), shape=image.shape, chunks=(8, 16, 16), dtype="f4")
    source[...] = image
    f = filters.Nlm(radius=2, strength=1.0)
    expected = f(image)
    lazy = chunkwise.dask.apply(f, source)
    assert lazy.npartitions == 96
    with losing_a_worker(client):
        result = lazy.compute()
    assert np.array_equal(result, expected)


def test_a_worker_is_lost_in_a_reconstruction(client):
    from test_dask import spiral
    mask = spiral(41)
    marker = np.zeros_like(mask)
    marker[0, 0] = 200
    expected = chunkwise.reconstruct(mask, marker)
    with losing_a_worker(client):
        result = chunkwise.dask.reconstruction(da.from_array(marker, chunks=8), da.from_array(mask, chunks=8),
                                               rounds=1).compute()
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("filter", [filters.OpeningByReconstruction(radius=1, preserve_intensities=True),
                                    filters.RegionalMaxima()], ids=repr)
def test_a_worker_is_lost_in_what_is_made_of_reconstructions(random, client, filter):
    image = random.integers(0, 4, (20, 24, 28)).astype("uint8")
    with losing_a_worker(client):
        result = filter(da.from_array(image, chunks=8)).compute()
    assert np.array_equal(result, filter(image))


def test_each_schedule(random, client):
    image = make_image(random, (12, 13, 14), "uint8")
    x = da.from_array(image, chunks=5)
    assert np.array_equal(chunkwise.sat(x).compute(), chunkwise.sat(image))
    assert chunkwise.statistics(x) == chunkwise.statistics(image)
    assert np.array_equal(chunkwise.fill_holes(x).compute(), chunkwise.fill_holes(image))
    assert np.array_equal(chunkwise.median(x, 2).compute(), chunkwise.median(image, 2))
