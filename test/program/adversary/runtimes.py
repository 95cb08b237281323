# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Whole networks beside onnxruntime, voxel by voxel, and the example's network on a real head."""
import importlib.util
import itertools
import os
import subprocess
import sys
import unittest
from pathlib import Path

import numpy
import onnxruntime
import SimpleITK

from adversary import support
from adversary.support import ProgramTest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "network"
TEMPLATES = Path("/usr/share/mricron/templates")
FIELDS = {"n337": 85, "n537": 163, "n726": 117, "n926": 155}


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run_dense(session, image, pools, field):
    """The outputs of the network of strides for every window: it is given every shift of the image (the others have
    been dropped from its grid), and its outputs, interleaved, are those of the dense network."""
    extent = [n - field + 1 for n in image.shape]
    result = numpy.empty((3, *extent), numpy.float32)
    stride = 2**pools
    for shift in itertools.product(*(range(min(stride, n)) for n in extent)):
        part = image[tuple(slice(s, None) for s in shift)]
        got = session.run(None, {"in": part[None, None]})[0][0]
        places = (slice(None), *(slice(s, None, stride) for s in shift))
        wanted = result[places].shape[1:]
        result[places] = got[(slice(None), *(slice(0, n) for n in wanted))]
    return result


class RuntimesTest(ProgramTest):
    def run_components(self, model, image, *options):
        """All channels of the network's result, [channel][z][y][x]."""
        source, target = self.folder / "in.mha", self.out
        SimpleITK.WriteImage(SimpleITK.GetImageFromArray(image), str(source))
        done = subprocess.run([support.PROGRAM, "network", model, source, target, "--output-components", *options],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return numpy.moveaxis(SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(target))), -1, 0)

    def check(self, expected, got, bound):
        """By the largest error over the largest output."""
        self.assertEqual(expected.shape, got.shape)
        self.assertLessEqual(float(numpy.abs(expected - got).max() / numpy.abs(expected).max()), bound)

    def test_networks_of_the_paper(self):
        networks = load(ROOT / "scripts" / "make_networks.py")
        random = numpy.random.default_rng(1)
        for name, field in FIELDS.items():
            model = self.folder / (name + ".onnx")
            model.write_bytes(networks.make_network(name, maps=4))
            image = random.random((field + 2, field + 1, field + 3), dtype=numpy.float32)
            expected = run_dense(make_session(model), image, networks.LAYERS[name].count(0), field)
            begin = (field - 1) // 2
            inside = (slice(None), *(slice(begin, begin + n) for n in expected.shape[1:]))
            # With few maps, of which some are always 0, results are small beside what they are made of.
            for precision, bound in (("float32", 5e-5), ("reproducible", 1e-5)):
                with self.subTest(network=name, precision=precision):
                    self.check(expected, self.run_components(model, image, "--precision", precision)[inside], bound)

    def test_network_of_the_example(self):
        model = EXAMPLE / "brain.onnx"
        image = numpy.random.default_rng(2).random((32, 40, 48), dtype=numpy.float32)
        session = make_session(model)
        expected = session.run(None, {session.get_inputs()[0].name: image[None, None]})[0][0]
        self.check(expected, self.run_components(model, image), 1e-5)

    @unittest.skipUnless(TEMPLATES.is_dir(), f"{TEMPLATES} is not here: Debian's mricron-data has it")
    def test_brain_of_a_real_head(self):
        # Dice with the brain that others found, with and without chunks.
        for memory in ("1G", "300M"):
            with self.subTest(memory=memory):
                done = subprocess.run([sys.executable, EXAMPLE / "check_brain.py", support.PROGRAM, "--templates", TEMPLATES,
                                       "--", "--memory", memory],
                                      capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
