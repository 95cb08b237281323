# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The notebooks, and the examples of regions on several processes."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import make_image

from chunkwise import filters

zarr = pytest.importorskip("zarr")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"

if not hasattr(zarr, "create_array"):
    pytest.skip("zarr-python 3 is not here", allow_module_level=True)


def has(module):
    return importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run(notebook, tmp_path):
    if not has("nibabel") or not has("skimage"):
        pytest.skip("nibabel and scikit-image are not installed")
    cells = json.loads(notebook.read_text())["cells"]
    assert all(not each.get("outputs") for each in cells), "outputs are not kept"
    code = "\n\n".join("".join(each["source"]) for each in cells if each["cell_type"] == "code")
    script = tmp_path / "notebook.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout


@pytest.fixture
def source(random, tmp_path):
    image = make_image(random, (40, 36, 50), "uint16")
    made = zarr.create_array(str(tmp_path / "in.zarr"), shape=image.shape, chunks=(8, 12, 16), shards=(16, 24, 32), dtype="u2")
    made[...] = image
    return image


def run(tmp_path, *command, **more):
    return subprocess.run([*command, str(tmp_path / "in.zarr"), str(tmp_path / "out.zarr")], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, **more)


def check(tmp_path, image):
    output = zarr.open(str(tmp_path / "out.zarr"), mode="r")
    assert np.array_equal(output[...], filters.Gaussian(sigma=2)(image))


def test_jobs_of_a_slurm_array(source, tmp_path):
    command = (sys.executable, str(EXAMPLES / "regions_slurm.py"))
    made = run(tmp_path, *command)
    assert made.returncode == 0, made.stdout
    for job in (5, 3, 4):
        job = {"SLURM_ARRAY_TASK_ID": str(job), "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "3"}
        done = run(tmp_path, *command, env={**os.environ, **job})
        assert done.returncode == 0, done.stdout
    check(tmp_path, source)


def test_ranks_of_mpi(source, tmp_path):
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if not has("mpi4py") or mpiexec is None:
        pytest.skip("mpi4py and an mpiexec are not installed")
    # As root, and with more ranks than cores, where Open MPI wants to be asked.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    done = run(tmp_path, mpiexec, "-n", "3", sys.executable, str(EXAMPLES / "regions_mpi.py"), env={**os.environ, **allowed})
    assert done.returncode == 0, done.stdout
    assert "12 regions by 3 ranks" in done.stdout
    check(tmp_path, source)


def test_workers_of_ray(source, tmp_path):
    if not has("ray"):
        pytest.skip("ray is not installed")
    done = run(tmp_path, sys.executable, str(EXAMPLES / "regions_ray.py"))
    assert done.returncode == 0, done.stdout
    check(tmp_path, source)
