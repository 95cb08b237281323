# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A filter over the workers of Ray, from Zarr to Zarr: python regions_ray.py in.zarr out.zarr"""
import sys

import ray
import zarr

import chunkwise
from chunkwise import filters

source_path, output_path = sys.argv[1:]
ray.init()  # or the address of a cluster
f = filters.Gaussian(sigma=2)
source = zarr.open(source_path, mode="r")
output = zarr.create_array(output_path, shape=source.shape, chunks=source.chunks, shards=source.shards,
                           dtype=f.default_dtype(source.dtype))


# num_gpus=1 gives each worker a separate GPU.
@ray.remote(num_cpus=1)
def fill(region):
    part = zarr.open(source_path, mode="r")[region.input]
    zarr.open(output_path, mode="r+")[region.output] = f.run(part, region, source.shape, threads=1)


# Regions of whole write units: no two workers write the same file.
regions = list(chunkwise.regions(f, source.shape, output.shards or output.chunks))
ray.get([fill.remote(region) for region in regions])
print(len(regions), "regions")
