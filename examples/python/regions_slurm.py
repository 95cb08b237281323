# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""A filter over the jobs of a Slurm array, from Zarr to Zarr.

    python regions_slurm.py in.zarr out.zarr                              # makes the output
    sbatch --array=0-15 --wrap "python regions_slurm.py in.zarr out.zarr" # fills it
"""
import os
import sys

import zarr

import chunkwise
from chunkwise import filters

f = filters.Gaussian(sigma=2)
source = zarr.open(sys.argv[1], mode="r")

if "SLURM_ARRAY_TASK_ID" not in os.environ:
    zarr.create_array(sys.argv[2], shape=source.shape, chunks=source.chunks, shards=source.shards,
                      dtype=f.default_dtype(source.dtype))
    sys.exit()

output = zarr.open(sys.argv[2], mode="r+")
jobs = int(os.environ["SLURM_ARRAY_TASK_COUNT"])
job = int(os.environ["SLURM_ARRAY_TASK_ID"]) - int(os.environ["SLURM_ARRAY_TASK_MIN"])

# Regions of whole write units: no two jobs write the same file.
regions = list(chunkwise.regions(f, source.shape, output.shards or output.chunks))
for region in regions[job::jobs]:
    output[region.output] = f.run(source[region.input], region, source.shape)
