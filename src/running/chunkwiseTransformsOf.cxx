/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseTransformsOf.h"

#include "chunkwiseError.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseStagedOperation.h"

namespace chunkwise
{

namespace
{

/** Calls f(convolution) for each through transforms. */
template <typename TFunctor>
void
ForEachTransformed(const Operation & operation, TFunctor && f)
{
  if (const auto * const convolution = dynamic_cast<const ImageConvolutionOperation *>(&operation))
  {
    if (convolution->GetName() == "convolution.fft")
    {
      f(*convolution);
    }
  }
  else if (const auto * const staged = dynamic_cast<const StagedOperation *>(&operation))
  {
    for (const Stage & stage : staged->GetStages())
    {
      if (stage.operation)
      {
        ForEachTransformed(*stage.operation, f);
      }
    }
  }
}

std::string
OnTheHost(const ImageConvolutionOperation & convolution, const std::string & whyNone)
{
  std::string reason;
  switch (convolution.transforms)
  {
    case TransformProvider::CuFFT:
      throw ParameterError("TransformProvider is cufft, and libcufft serves CUDA devices alone, but the CPU computes" +
                           (whyNone.empty() ? "" : ": " + whyNone));
    case TransformProvider::FFTW:
      if (!GetFftw(&reason))
      {
        throw ParameterError(
          "TransformProvider is fftw, but the module ChunkwiseFftw, which CHUNKWISE_USE_FFTW builds, "
          "cannot be opened: " +
          reason);
      }
      return "fftw";
    default:
      return "own";
  }
}

} // namespace

bool
NamesProvider(const Operation & operation, TransformProvider provider)
{
  bool names = false;
  ForEachTransformed(operation, [&](const auto & convolution) { names = names || convolution.transforms == provider; });
  return names;
}

std::set<std::string>
TransformsOf(const Operation & operation, const Device * device, const std::string & whyNone)
{
  std::set<std::string> names;
  ForEachTransformed(operation, [&](const auto & convolution) {
    names.insert(device ? device->GetTransforms(convolution) : OnTheHost(convolution, whyNone));
  });
  return names;
}

} // namespace chunkwise
