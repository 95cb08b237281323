/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#define CHUNKWISE_CPU_LEVEL baseline
#include "chunkwiseCpuFftImplementation.h"

namespace chunkwise
{

FftFunctions<float>
MakeFftFunctionsFloatBaseline()
{
  return baseline::Fft<float>::Make();
}

FftFunctions<double>
MakeFftFunctionsDoubleBaseline()
{
  return baseline::Fft<double>::Make();
}

} // namespace chunkwise
