# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
set(Chunkwise_CPU_SRCS
  cpu/chunkwiseCpuBoxStatistic.cxx
  cpu/chunkwiseCpuConvolutionCache.cxx
  cpu/chunkwiseCpuFft.cxx
  cpu/chunkwiseCpuFftBaseline.cxx
  cpu/chunkwiseCpuFftConvolution.cxx
  cpu/chunkwiseCpuVaryingConvolution.cxx
  cpu/chunkwiseCpuExtremum.cxx
  cpu/chunkwiseCpuFlatExtremum.cxx
  cpu/chunkwiseCpuIdentity.cxx
  cpu/chunkwiseCpuLevel.cxx
  cpu/chunkwiseCpuLevelBaseline.cxx
  cpu/chunkwiseCpuMean.cxx
  cpu/chunkwiseCpuNonLocalMeans.cxx
  cpu/chunkwiseCpuRank.cxx
  cpu/chunkwiseCpuRankTiles.cxx
  cpu/chunkwiseCpuRange.cxx
  cpu/chunkwiseCpuReconstruction.cxx
  cpu/chunkwiseCpuSettle.cxx
  cpu/chunkwiseCpuSeparable.cxx
  cpu/chunkwiseCpuSummedAreaTable.cxx
  cpu/chunkwiseCpuTableBaseline.cxx
  cpu/chunkwiseCpuVariance.cxx
  cpu/chunkwiseCpuWiener.cxx
  cpu/chunkwiseCpuWindow.cxx
  cpu/chunkwiseCpuSequence.cxx
  cpu/chunkwiseCpuLaplacian.cxx
  cpu/chunkwiseCpuHighPass.cxx
  cpu/chunkwiseCpuDifference.cxx
  cpu/chunkwiseCpuEntropy.cxx
  cpu/chunkwiseCpuConvolution.cxx
  cpu/chunkwiseHostKernels.cxx
)
# The same rows for several instruction sets. A contracted multiply-add would give other bits on one than on another;
# what rounding functions do to errno and traps is nobody's concern here and keeps loops from being vectorised.
set(_row_flags "-O3 -ffp-contract=off -fno-math-errno -fno-trapping-math")
set_source_files_properties(cpu/chunkwiseCpuLevelBaseline.cxx PROPERTIES COMPILE_FLAGS "${_row_flags}")
set_source_files_properties(cpu/chunkwiseCpuBoxStatistic.cxx cpu/chunkwiseCpuConvolution.cxx cpu/chunkwiseCpuDifference.cxx cpu/chunkwiseCpuEntropy.cxx
  cpu/chunkwiseCpuHighPass.cxx cpu/chunkwiseCpuLaplacian.cxx cpu/chunkwiseCpuNonLocalMeans.cxx cpu/chunkwiseCpuSummedAreaTable.cxx
  cpu/chunkwiseCpuReconstruction.cxx cpu/chunkwiseCpuTableBaseline.cxx cpu/chunkwiseCpuVariance.cxx cpu/chunkwiseCpuWiener.cxx PROPERTIES COMPILE_FLAGS "${_row_flags}")
set_source_files_properties(cpu/chunkwiseCpuMean.cxx cpu/chunkwiseCpuSeparable.cxx PROPERTIES
  COMPILE_FLAGS "-ffp-contract=off")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND Chunkwise_CPU_SRCS cpu/chunkwiseCpuLevelAvx2.cxx cpu/chunkwiseCpuLevelAvx512.cxx
    cpu/chunkwiseCpuTableAvx2.cxx cpu/chunkwiseCpuTableAvx512.cxx)
  set_source_files_properties(cpu/chunkwiseCpuLevelAvx2.cxx cpu/chunkwiseCpuTableAvx2.cxx PROPERTIES COMPILE_FLAGS "${_row_flags} -mavx2 -mfma")
  set_source_files_properties(cpu/chunkwiseCpuLevelAvx512.cxx cpu/chunkwiseCpuTableAvx512.cxx PROPERTIES
    COMPILE_FLAGS "${_row_flags} -mavx2 -mfma -mavx512f -mavx512bw -mavx512vl -mavx512dq")
  set_source_files_properties(cpu/chunkwiseCpuLevel.cxx cpu/chunkwiseCpuSummedAreaTable.cxx PROPERTIES
    COMPILE_DEFINITIONS CHUNKWISE_HAS_X86_LEVELS)
endif()

# Transforms promise a bound, not bits: multiply-add may be contracted.
set(_fft_flags "-O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wno-psabi")
set_source_files_properties(cpu/chunkwiseCpuFftBaseline.cxx PROPERTIES COMPILE_FLAGS "${_fft_flags}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND Chunkwise_CPU_SRCS cpu/chunkwiseCpuFftAvx2.cxx cpu/chunkwiseCpuFftAvx512.cxx)
  set_source_files_properties(cpu/chunkwiseCpuFftAvx2.cxx PROPERTIES COMPILE_FLAGS "${_fft_flags} -mavx2 -mfma")
  set_source_files_properties(cpu/chunkwiseCpuFftAvx512.cxx PROPERTIES
    COMPILE_FLAGS "${_fft_flags} -mavx2 -mfma -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512")
  set_source_files_properties(cpu/chunkwiseCpuFft.cxx PROPERTIES COMPILE_DEFINITIONS CHUNKWISE_HAS_X86_LEVELS)
endif()
