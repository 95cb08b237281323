# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""On a cluster of processes, one of which is killed."""
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


def test_a_lost_worker(random, tmp_path, client):
    image = make_image(random, (48, 64, 64), "float32")
    source = zarr.create_array(str(tmp_path / "in.zarr"), shape=image.shape, chunks=(8, 16, 16), dtype="f4")
    source[...] = image
    f = filters.Nlm(radius=2, strength=1.0)
    expected = f(image)
    lazy = chunkwise.dask.apply(f, source)
    assert lazy.npartitions == 96
    victims = []

    def kill():
        # As soon as it has something to lose.
        while not victims:
            held = client.has_what()
            busy = [(address, keys) for address, keys in held.items() if keys]
            if busy:
                victims.append(client.scheduler_info()["workers"][busy[0][0]]["nanny"])
                os.kill(pids[busy[0][0]], signal.SIGKILL)
            time.sleep(0.005)

    pids = client.run(os.getpid)
    killer = threading.Thread(target=kill)
    killer.start()
    result = lazy.compute()
    victims = victims or ["the run was over"]
    killer.join()
    assert victims != ["the run was over"]
    assert np.array_equal(result, expected)


def test_each_schedule(random, client):
    image = make_image(random, (12, 13, 14), "uint8")
    x = da.from_array(image, chunks=5)
    assert np.array_equal(chunkwise.sat(x).compute(), chunkwise.sat(image))
    assert chunkwise.statistics(x) == chunkwise.statistics(image)
    assert np.array_equal(chunkwise.fill_holes(x).compute(), chunkwise.fill_holes(image))
    assert np.array_equal(chunkwise.median(x, 2).compute(), chunkwise.median(image, 2))
