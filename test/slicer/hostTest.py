# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The modules in 3D Slicer's own logic of command-line modules, without its windows: hostTest.py PROGRAM WORK.

Needs the packages of requirements.txt (scripts/run_slicer_tests.sh installs them), and a compiler for what tells Slicer's
libraries of a module. Ends with 77, "skipped", where they are not there.
"""
import ctypes
import os
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77
HANGS = 120


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


try:
    import ctk_cli
    import numpy
    import slicer
    import slicer_core
    import vtk
    from vtk.util.numpy_support import numpy_to_vtk
except ImportError as missing:
    skip(f"{missing}; scripts/run_slicer_tests.sh installs it")


def compile_registrar(folder):
    """A library with RegisterModule, beside Slicer's own."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if not compiler:
        skip("there is no compiler")
    base = Path(slicer_core.__file__).parent
    libraries = [base / "libMRMLCLI.so", base / "third_party.libs" / "libModuleDescriptionParser.so"]
    target = folder / "registrar.so"
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", HERE / "moduleRegistrar.cxx",
                    "-o", target, "-Wl,--unresolved-symbols=ignore-all", *libraries], check=True)
    for library in libraries:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(target))


class Host:
    """A scene, and the thread that runs modules."""

    def __init__(self, folder):
        self.folder = folder
        self.scene = slicer.vtkMRMLScene()
        self.application = slicer.vtkSlicerApplicationLogic()
        self.application.SetMRMLScene(self.scene)
        self.application.SetTemporaryPath(str(folder))
        self.application.CreateProcessingThread()
        self.logic = slicer.vtkSlicerCLIModuleLogic()
        self.logic.SetMRMLApplicationLogic(self.application)
        self.logic.SetMRMLScene(self.scene)
        self.logic.DeleteTemporaryFilesOff()

    def add_volume(self, voxels=None):
        volume = slicer.vtkMRMLScalarVolumeNode()
        if voxels is not None:
            image = vtk.vtkImageData()
            image.SetDimensions(*voxels.shape[::-1])
            image.GetPointData().SetScalars(numpy_to_vtk(voxels.ravel(), deep=True))
            volume.SetAndObserveImageData(image)
            volume.SetSpacing(0.5, 0.75, 1.25)
        self.scene.AddNode(volume)
        return volume

    def start(self, title, source, result, **parameters):
        node = slicer.vtkMRMLCommandLineModuleNode()
        self.scene.AddNode(node)
        node.SetModuleDescription(title)
        node.SetParameterAsString("inputVolume", source.GetID())
        node.SetParameterAsString("outputVolume", result.GetID())
        for name, value in parameters.items():
            node.SetParameterAsString(name, value if isinstance(value, str) else value.GetID())
        self.logic.Apply(node, False)
        return node

    def wait(self, node, until=None):
        """Its reports of progress. To fetch the result needs Qt's queue, so the run ends where that would begin."""
        said = []
        end = time.monotonic() + HANGS
        while node.GetStatusString() in ("Scheduled", "Running", "Cancelling"):
            if time.monotonic() > end:
                raise AssertionError("not ended")
            said.append(node.GetProgress())
            if until and until(said):
                break
            time.sleep(0.002)
        return said

    def files_of(self, node):
        """The temporary file of a volume: its name has the digits of the volume's as letters."""
        return list(self.folder.glob("*_" + node.GetID().translate({48 + d: 65 + d for d in range(10)}) + ".mha"))


class HostTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A name that launchers must quote.
        cls.modules = WORK / "mödules 'of' mine"
        subprocess.run([PROGRAM, "slicer-modules", cls.modules], check=True, stdout=subprocess.DEVNULL)
        cls.xml_files = sorted(cls.modules.glob("*.xml"))
        registrar = compile_registrar(WORK)
        cls.states = {x.stem: registrar.RegisterModule(str(x.with_suffix("")).encode(), str(x).encode()) for x in cls.xml_files}
        cls.temporary = WORK / "temporary"
        cls.temporary.mkdir()
        cls.host = Host(cls.temporary)
        cls.voxels = numpy.random.default_rng(5).integers(0, 1000, (21, 22, 23), dtype=numpy.int16)
        cls.volume = cls.host.add_volume(cls.voxels)

    def direct(self, source, *words):
        out = WORK / "direct.mha"
        subprocess.run([PROGRAM, words[0], source, out, *words[1:]], check=True)
        return out.read_bytes()

    def test_all_modules_are_read(self):
        self.assertGreater(len(self.states), 30)
        self.assertEqual({name: state for name, state in self.states.items() if state}, {})
        for file in self.xml_files:
            module = ctk_cli.CLIModule(str(file))
            self.assertTrue(module.title.startswith("Chunkwise "))
            self.assertIn("inputVolume", [p.name for group in module for p in group])

    def run_module(self, title, **parameters):
        result = self.host.add_volume()
        node = self.host.start(title, self.volume, result, **parameters)
        said = self.host.wait(node)
        self.assertEqual(node.GetErrorText(), "")
        self.assertIn(node.GetStatusString(), ("Completing", "Completed"))
        return said, self.host.files_of(self.volume)[0], self.host.files_of(result)[0]

    def test_results_are_those_of_direct_runs(self):
        marker = self.host.add_volume(numpy.minimum(self.voxels, 300).astype(numpy.int16))
        for title, parameters, words in (
            ("Chunkwise median", {"radius": "2"}, ("median", "--radius=2")),
            ("Chunkwise gaussian", {"sigma": "1.5", "boundary": "mirror", "outputType": "float32"},
             ("gaussian", "--sigma=1.5", "--boundary=mirror", "--output-type=float32")),
            ("Chunkwise h-maxima", {"height": "40", "full": "true"}, ("h-maxima", "--height=40", "--full")),
            ("Chunkwise wiener", {"radius": "1,2,1"}, ("wiener", "--radius=1,2,1", "--noise=auto")),
            ("Chunkwise identity", {}, ("identity",)),
        ):
            with self.subTest(module=title):
                _, source, out = self.run_module(title, **parameters)
                self.assertIn(b"CompressedData = False", source.read_bytes()[:1000])
                self.assertEqual(out.read_bytes(), self.direct(source, *words))
        kernel = self.host.add_volume(numpy.random.default_rng(7).integers(1, 9, (3, 5, 7), dtype=numpy.int16))
        _, source, out = self.run_module("Chunkwise deconvolve", kernel=kernel, weight=marker, iterations="3", accelerate="true",
                                         background="1.5", outputType="float32")
        measured, weight = self.host.files_of(kernel)[0], self.host.files_of(marker)[0]
        self.assertEqual(out.read_bytes(), self.direct(source, "deconvolve", "--kernel", measured, "--weight", weight, "--iterations=3",
                                                       "--accelerate", "--background=1.5", "--output-type=float32"))
        result = self.host.add_volume()
        node = self.host.start("Chunkwise reconstruct", self.volume, result, marker=marker)
        self.host.wait(node)
        self.assertEqual(node.GetErrorText(), "")
        source, out, marked = [self.host.files_of(volume)[0] for volume in (self.volume, result, marker)]
        self.assertEqual(out.read_bytes(), self.direct(source, "reconstruct", "--marker", marked))

    def test_every_module_runs_with_its_defaults(self):
        files = ("Reconstruct", "Difference", "ConvolveImage", "ConvolveVarying", "Deconvolve", "DeconvolveVarying", "Divergence", "Network")
        for file in self.xml_files:
            if file.stem.removeprefix("Chunkwise") in files:
                continue
            module = ctk_cli.CLIModule(str(file))
            # Gaussians have no width by default.
            required = {p.name: "1" for group in module for p in group if p.name == "sigma" and not p.default}
            with self.subTest(module=module.title):
                _, _, out = self.run_module(module.title, **required)
                self.assertGreater(out.stat().st_size, self.voxels.size // (8 if file.stem == "ChunkwiseBin" else 1))

    def test_progress_grows(self):
        volume = self.host.add_volume(numpy.zeros((120, 120, 120), numpy.uint8))
        node = self.host.start("Chunkwise median", volume, self.host.add_volume(), radius="9", threads="1")
        said = self.host.wait(node)
        self.assertEqual(said, sorted(said))
        self.assertGreater(len(set(said)), 5, "steps of the progress that the host saw")

    def test_cancel_and_again(self):
        volume = self.host.add_volume(numpy.random.default_rng(6).integers(0, 255, (150, 150, 150)).astype(numpy.uint8))
        result = self.host.add_volume()
        node = self.host.start("Chunkwise nlm", volume, result, radius="7", strength="30", threads="1")
        self.host.wait(node, until=lambda said: said[-1] > 0)
        node.Cancel()
        self.host.wait(node)
        self.assertEqual(node.GetStatusString(), "Cancelled")
        self.assertEqual(self.host.files_of(result), [])
        # The files of the killed run go with the next run.
        result = self.host.add_volume()
        node = self.host.start("Chunkwise median", volume, result, radius="1")
        self.host.wait(node)
        self.assertEqual(node.GetErrorText(), "")
        self.assertTrue(self.host.files_of(result))
        self.assertEqual([p.name for p in self.temporary.iterdir() if p.is_dir()], [])

    def test_errors_are_shown(self):
        node = self.host.start("Chunkwise median", self.volume, self.host.add_volume(), radius="-1")
        self.host.wait(node)
        self.assertIn("Completed with errors", node.GetStatusString())
        self.assertIn("--radius", node.GetErrorText())


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv[1]).resolve())
    WORK = Path(sys.argv[2]).resolve()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    # Slicer's threads have no application to end with.
    good = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False).result.wasSuccessful()
    sys.stdout.flush()
    os._exit(0 if good else 1)
