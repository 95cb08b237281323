# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
itk_module(Chunkwise
  DEPENDS
    ITKCommon
  COMPILE_DEPENDS
    ITKIOImageBase
  TEST_DEPENDS
    ITKTestKernel
    ITKGoogleTest
    ITKAnisotropicSmoothing
    ITKConnectedComponents
    ITKConvolution
    ITKDeconvolution
    ITKDisplacementField
    ITKDistanceMap
    ITKFFT
    ITKImageFeature
    ITKMathematicalMorphology
    ITKSmoothing
    ITKIOMeta
    ITKIONIFTI
  DESCRIPTION
    "Boundary-exact image filters that stream images larger than the memory of a GPU, on all GPUs of a machine or on the CPU."
  EXCLUDE_FROM_DEFAULT
  ENABLE_SHARED
)
