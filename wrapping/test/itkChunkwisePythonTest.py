#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The filters as they are used from Python. Their results are the business of the tests in C++."""
import pathlib
import unittest

import numpy

if "bool" not in dir(numpy):
    # ITK 5.2 asks for a name that NumPy 1.24 no longer has, and NumPy 2 has again.
    numpy.bool = bool
import itk

# The classes that this folder wraps.
NAMES = {file.stem[3:] for file in pathlib.Path(__file__).parents[1].glob("*.wrap")}
BASES = {
    "ChunkwiseImageToImageFilter", "ChunkwiseWindowImageFilter", "ChunkwiseBoxImageFilter",
    "ChunkwiseMorphologyImageFilter", "HeapReconstructionImageFilter", "HeapReconstructionByHeightImageFilter",
    "HeapReconstructionFromMarkerImageFilter", "HeapReconstructionOfMorphologyImageFilter", "HeapRegionalExtremaImageFilter",
} | {name for name in NAMES if name.endswith("Base")}


def random_array(*shape):
    return numpy.random.default_rng(7).random(shape, dtype=numpy.float32)


class ChunkwisePythonTest(unittest.TestCase):
    def assert_equal(self, image, array, tolerance=0):
        result = itk.array_from_image(image)
        self.assertEqual(result.shape, array.shape)
        self.assertLessEqual(numpy.abs(result.astype(float) - array).max(), tolerance)

    def test_every_class_makes_objects_of_its_own(self):
        names = {name for name in NAMES if name.endswith(("Filter", "Sink"))}
        self.assertGreater(len(names), 60)
        for name in names - BASES:
            for parameters, made in getattr(itk, name).items():
                instance = made.New()
                self.assertEqual(instance.GetNameOfClass(), name, parameters)
                self.assertTrue(hasattr(instance, "SetInput"), name)
                if not name.endswith("Sink"):
                    self.assertTrue(hasattr(instance, "SetDeviceMemoryBudget"), name)

    def test_functions_take_and_give_images(self):
        array = random_array(9, 10, 11)
        result = itk.renormalized_mean_image_filter(itk.image_view_from_array(array), radius=[1, 2, 3])
        expected = numpy.empty(array.shape)
        for z, y, x in numpy.ndindex(array.shape):
            window = array[max(z - 3, 0) : z + 4, max(y - 2, 0) : y + 3, max(x - 1, 0) : x + 2]
            expected[z, y, x] = window.mean(dtype=float)
        self.assert_equal(result, expected, 1e-6)

    def test_setters_of_bases_are_there(self):
        ramp = numpy.add.outer(3 * numpy.arange(9), 4 * numpy.arange(10)).astype(numpy.float32)
        image = itk.image_view_from_array(ramp)
        self.assert_equal(itk.renormalized_gradient_image_filter(image, sigma=1.0), numpy.full(ramp.shape, 5.0), 1e-5)
        bytes_ = numpy.ones((5, 6), numpy.uint8)
        bytes_[2, 1] = 0
        distances = itk.EuclideanDistanceImageFilter[itk.Image[itk.UC, 2], itk.Image[itk.F, 2]].New()
        distances.SetInput(itk.image_view_from_array(bytes_))
        distances.SetSpatialAxes([0, 1])
        distances.SetUseImageSpacing(False)
        distances.SetDeviceMemoryBudget(1 << 28)
        distances.Update()
        y, x = numpy.indices(bytes_.shape)
        self.assert_equal(distances.GetOutput(), numpy.hypot(y - 2, x - 1), 1e-6)

    def test_integers_stay_exact(self):
        array = (255 * random_array(8, 13)).astype(numpy.uint8)
        result = itk.renormalized_maximum_image_filter(itk.image_view_from_array(array), radius=1)
        windows = [numpy.roll(numpy.pad(array, 1), (y, x), (0, 1))[1:-1, 1:-1] for y in (-1, 0, 1) for x in (-1, 0, 1)]
        self.assert_equal(result, numpy.max(windows, axis=0))

    def test_boundary_and_backend_are_chosen_by_name(self):
        array = numpy.full((12, 12), 4, numpy.float32)
        image = itk.image_view_from_array(array)
        gaussian = itk.RenormalizedGaussianImageFilter.New(image, sigma=1.5)
        gaussian.SetBackend(itk.ChunkwiseEnums.Backend_CPU)
        gaussian.Update()
        self.assertEqual(gaussian.GetBackendUsed(), "cpu")
        self.assert_equal(gaussian.GetOutput(), array, 1e-6)
        gaussian.SetBoundaryCondition(itk.ChunkwiseEnums.BoundaryCondition_Constant)
        gaussian.Update()
        self.assertLess(itk.array_from_image(gaussian.GetOutput())[0, 0], 2)

    def test_errors_name_the_parameter_and_the_value(self):
        image = itk.image_view_from_array(random_array(6, 6))
        with self.assertRaisesRegex(RuntimeError, "Sigma.*-1"):
            itk.renormalized_gaussian_image_filter(image, sigma=-1)
        with self.assertRaisesRegex(RuntimeError, "Strength"):
            itk.renormalized_non_local_means_image_filter(image)

    def test_a_sequence_is_its_filters_one_after_the_other(self):
        image = itk.image_view_from_array(random_array(20, 21))
        mean = itk.RenormalizedMeanImageFilter.New(image, radius=2)
        gaussian = itk.RenormalizedGaussianImageFilter.New(mean.GetOutput(), sigma=1)
        gaussian.Update()
        one_by_one = itk.array_from_image(gaussian.GetOutput())
        sequence = itk.ChunkwiseSequenceImageFilter.New(image)
        kinds = (type(image), type(image))
        sequence.AddFilter(itk.RenormalizedMeanImageFilter[kinds].New(radius=2))
        sequence.AddFilter(itk.RenormalizedGaussianImageFilter[kinds].New(sigma=1))
        sequence.Update()
        self.assert_equal(sequence.GetOutput(), one_by_one)

    def test_kernels_are_images(self):
        array = random_array(30, 31)
        image = itk.image_view_from_array(array)
        kernel = random_array(5, 7)
        once = itk.PrunedFFTConvolutionImageFilter.New(image)
        once.SetKernelImage(itk.image_view_from_array(kernel))
        once.Update()
        varying = itk.SpatiallyVaryingConvolutionImageFilter.New(image)
        varying.SetGridSize([2, 2])
        varying.SetKernelStack(itk.image_view_from_array(numpy.stack([kernel] * 4)))
        varying.Update()
        # Equal kernels at all nodes: the plain convolution.
        plain = itk.array_from_image(once.GetOutput())
        self.assert_equal(varying.GetOutput(), plain, 1e-5 * numpy.abs(plain).max())

    def test_reconstructions(self):
        array = numpy.zeros((9, 9), numpy.uint8)
        array[2:7, 2:7] = 100
        array[4, 4] = 10
        image = itk.image_view_from_array(array)
        filled = array.copy()
        filled[4, 4] = 100
        self.assert_equal(itk.heap_fillhole_image_filter(image), filled)
        marker = numpy.zeros_like(array)
        marker[3, 3] = 60
        dilation = itk.HeapReconstructionByDilationImageFilter[type(image), type(image)].New()
        dilation.SetMethod(itk.HeapReconstructionEnums.Method_SpanningForest)
        dilation.SetMarkerImage(itk.image_view_from_array(marker))
        dilation.SetMaskImage(image)
        dilation.Update()
        self.assert_equal(dilation.GetOutput(), numpy.minimum(array, 60))

    def test_tables_and_boxes(self):
        array = (10 * random_array(7, 8)).astype(numpy.uint8)
        image = itk.image_view_from_array(array)
        table = itk.SummedAreaTableImageFilter[type(image), itk.Image[itk.F, 2]].New(image)
        table.Update()
        self.assert_equal(table.GetOutput(), array.astype(float).cumsum(0).cumsum(1))
        box = itk.BoxStatisticImageFilter.New(image, radius=20)
        box.SetStatistic(itk.BoxStatisticEnums.Statistic_Mean)
        box.Update()
        self.assert_equal(box.GetOutput(), numpy.full(array.shape, array.mean()), 0.5)

    def test_streaming_changes_nothing(self):
        image = itk.image_view_from_array(random_array(64, 20, 20))
        gaussian = itk.RenormalizedGaussianImageFilter.New(image, sigma=2)
        gaussian.Update()
        whole = itk.array_from_image(gaussian.GetOutput())
        splitter = gaussian.MakeRegionSplitter()
        self.assertEqual(splitter.GetNameOfClass(), "ChunkwiseImageRegionSplitter")
        streamer = itk.StreamingImageFilter.New(gaussian.GetOutput(), number_of_stream_divisions=4)
        streamer.SetRegionSplitter(splitter)
        gaussian.Modified()
        streamer.Update()
        self.assert_equal(streamer.GetOutput(), whole)

    def test_statistics_of_any_size(self):
        array = random_array(40, 41)
        sink = itk.ChunkwiseStatisticsImageSink.New(itk.image_view_from_array(array))
        sink.SetNumberOfStreamDivisions(5)
        sink.Update()
        self.assertAlmostEqual(sink.GetSum(), array.sum(dtype=float), 9)
        self.assertEqual(sink.GetMaximum(), array.max())


if __name__ == "__main__":
    unittest.main()
