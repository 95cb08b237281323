# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A filter over the ranks of MPI, from Zarr to Zarr: mpiexec -n 16 python regions_mpi.py in.zarr out.zarr"""
import os
import sys

import zarr
from mpi4py import MPI

import chunkwise
from chunkwise import filters

world = MPI.COMM_WORLD
f = filters.Gaussian(sigma=2)
source = zarr.open(sys.argv[1], mode="r")

if world.rank == 0:
    zarr.create_array(sys.argv[2], shape=source.shape, chunks=source.chunks, shards=source.shards,
                      dtype=f.default_dtype(source.dtype))
world.Barrier()
output = zarr.open(sys.argv[2], mode="r+")

# Ranks of one machine share its cores.
neighbours = world.Split_type(MPI.COMM_TYPE_SHARED).size
threads = max(1, len(os.sched_getaffinity(0)) // neighbours)

# Regions of whole write units: no two ranks write the same file.
regions = list(chunkwise.regions(f, source.shape, output.shards or output.chunks))
for region in regions[world.rank::world.size]:
    output[region.output] = f.run(source[region.input], region, source.shape, threads=threads)
done = world.reduce(len(regions[world.rank::world.size]))
if world.rank == 0:
    print(done, "regions by", world.size, "ranks")
