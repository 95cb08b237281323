/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseTransformsOf.h"

#include "chunkwiseError.h"
#include "chunkwiseFftwModule.h"
#include "chunkwiseStagedOperation.h"

namespace chunkwise
{

namespace
{

/** Calls f(convolution, its input's kind). */
template <typename TFunctor>
void
ForEachTransformed(const Operation & operation, const std::vector<PixelKind> & inputs, PixelKind output, TFunctor && f)
{
  if (const auto * const convolution = dynamic_cast<const ImageConvolutionOperation *>(&operation))
  {
    if (convolution->GetName() == "convolution.fft")
    {
      f(*convolution, inputs.front());
    }
  }
  else if (const auto * const staged = dynamic_cast<const StagedOperation *>(&operation))
  {
    const std::vector<Stage>     stages = staged->GetStages();
    const std::vector<PixelKind> kinds = staged->GetStageKinds(inputs.front(), output);
    for (std::size_t i = 0; i < stages.size(); ++i)
    {
      std::vector<PixelKind> ofStage;
      for (const int input : stages[i].inputs)
      {
        // A further input of which nothing is known yet is of the first one's kind.
        const auto own = static_cast<std::size_t>(Stage::Input(input));
        ofStage.push_back(input >= 0            ? kinds[static_cast<std::size_t>(input)]
                          : own < inputs.size() ? inputs[own]
                                                : inputs.front());
      }
      if (stages[i].operation && !ofStage.empty())
      {
        ForEachTransformed(*stages[i].operation, ofStage, kinds[i], f);
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
  ForEachTransformed(operation, { PixelKind::Float32 }, PixelKind::Float32, [&](const auto & convolution, PixelKind) {
    names = names || convolution.transforms == provider;
  });
  return names;
}

std::set<std::string>
TransformsOf(const Operation & operation, const std::vector<PixelKind> & inputs, PixelKind output,
             const Device * device, const std::string & whyNone)
{
  std::set<std::string> names;
  if (!inputs.empty())
  {
    ForEachTransformed(operation, inputs, output, [&](const auto & convolution, PixelKind input) {
      names.insert(device ? device->GetTransforms(convolution, input) : OnTheHost(convolution, whyNone));
    });
  }
  return names;
}

} // namespace chunkwise
