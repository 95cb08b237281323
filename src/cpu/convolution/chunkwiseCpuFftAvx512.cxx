/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx512
#include "chunkwiseCpuFftImplementation.h"

namespace chunkwise
{

FftFunctions<float>
MakeFftFunctionsFloatAvx512()
{
  return avx512::Fft<float>::Make();
}

FftFunctions<double>
MakeFftFunctionsDoubleAvx512()
{
  return avx512::Fft<double>::Make();
}

} // namespace chunkwise
