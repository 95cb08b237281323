/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL avx2
#include "chunkwiseCpuFftImplementation.h"

namespace chunkwise
{

FftFunctions<float>
MakeFftFunctionsFloatAvx2()
{
  return avx2::Fft<float>::Make();
}

FftFunctions<double>
MakeFftFunctionsDoubleAvx2()
{
  return avx2::Fft<double>::Make();
}

} // namespace chunkwise
