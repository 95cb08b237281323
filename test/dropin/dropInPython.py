# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Python calls a library that uses ITK, as it is, with ITK_AUTOLOAD_PATH, and after it has registered the factory.

    dropInPython.py LIBRARY PLUGIN_FOLDER DROP_IN_LIBRARY
"""
import ctypes
import os
import random
import subprocess
import sys

EXTENT = 24


def median(library):
    """The class that did it, and the result."""
    function = ctypes.CDLL(library).MedianOfCube
    function.restype = ctypes.c_char_p
    generator = random.Random(3)
    cube = ctypes.c_short * EXTENT**3
    voxels, result = cube(*(generator.randrange(-500, 500) for _ in range(EXTENT**3))), cube()
    return function(voxels, result, EXTENT).decode(), bytes(result)


def child(how, library, drop_in):
    if how == "register":
        register = ctypes.CDLL(drop_in).ChunkwiseRegisterDropInFactory
        register.restype = ctypes.c_char_p
        os.environ["CHUNKWISE_DROP_IN"] = "quick"
        assert b"exact, fast or off" in register(), "a bad variable is taken"
        os.environ["CHUNKWISE_DROP_IN"] = "exact"
        error = register()
        assert error is None, error
    name, result = median(library)
    print(name, result.hex())


def test(library, plugins, drop_in):
    said = {}
    for how in ("plain", "autoload", "register"):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CHUNKWISE_DROP_IN", "ITK_AUTOLOAD"))}
        if how == "autoload":
            environment["ITK_AUTOLOAD_PATH"] = plugins
        said[how] = subprocess.run([sys.executable, __file__, "--child", how, library, drop_in], env=environment, check=True,
                                   stdout=subprocess.PIPE, text=True).stdout.split()
    for how in ("autoload", "register"):
        assert said[how][1] == said["plain"][1], f"{how}: other voxels"
        assert "ChunkwiseStandIn" in said[how][0], said[how][0]
    assert "ChunkwiseStandIn" not in said["plain"][0], said["plain"][0]


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(*sys.argv[2:])
    else:
        test(*map(os.path.abspath, sys.argv[1:]))
