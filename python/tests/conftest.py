# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest


@pytest.fixture
def random(request):
    """Random numbers of the test's own, the same each time."""
    return np.random.default_rng(abs(hash_of(request.node.name)))


def hash_of(text):
    value = 5381
    for letter in text:
        value = (33 * value + ord(letter)) % 2**31
    return value


def make_image(random, shape, dtype):
    """Noise, over the whole range of small integers."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(max(limits.min, -30000), min(limits.max, 30000), shape, endpoint=True).astype(dtype)
