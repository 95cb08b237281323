/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSpectralDeconvolutionOperation.h"

#include "chunkwiseCpuConvolutionRows.h"
#include "chunkwiseCpuFftBlock.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseKernelChoice.h"

#include <cmath>

namespace chunkwise
{

namespace
{

/** The quotient of spectra: in place of the product of a convolution. */
class SpectralQuotient
{
public:
  SpectralQuotient(const SpectralDeconvolutionOperation & operation, const ConvolutionBlock & block)
    : m_Operation(operation)
  {
    for (const auto & role : block.role)
    {
      m_Points *= role.transformed ? static_cast<double>(role.length) : 1.0;
    }
  }

  void
  operator()(double * cells, const double * factors, std::int64_t stride, std::int64_t n) const
  {
    constexpr std::int64_t lanes = FftLanes<double>;
    for (std::int64_t i = 0; i < n; ++i)
    {
      double * const       re = cells + i * FftCell<double>;
      double * const       im = re + lanes;
      const double * const h = factors + i * stride * FftCell<double>;
      for (std::int64_t lane = 0; lane < lanes; ++lane)
      {
        // Images are transformed to twice their spectra, kernels to theirs over twice the points.
        const double x = re[lane] * 0.5;
        const double y = im[lane] * 0.5;
        const double u = h[lane] * (2 * m_Points);
        const double v = h[lane + lanes] * (2 * m_Points);
        const double factor = this->GetFactor(x * x + y * y, u * u + v * v);
        re[lane] = (x * u + y * v) * factor;
        im[lane] = (y * u - x * v) * factor;
      }
    }
  }

private:
  /** The factor of I conj(H), over the number of points. */
  double
  GetFactor(double image, double kernel) const
  {
    double divisor = kernel;
    double size = kernel;
    switch (m_Operation.rule)
    {
      case SpectralRule::Wiener:
        divisor += m_Operation.noiseVariance > 0 ? m_Operation.noiseVariance / (image - m_Operation.noiseVariance) : 0;
        size = std::abs(divisor);
        break;
      case SpectralRule::Tikhonov:
        size = divisor += m_Operation.regularization;
        break;
      default:
        size = std::sqrt(kernel);
    }
    return size >= m_Operation.leastMagnitude && divisor != 0 ? 1 / (divisor * m_Points) : 0.0;
  }

  const SpectralDeconvolutionOperation & m_Operation;
  double                                 m_Points{ 1 };
};

void
RunSpectralDeconvolution(const KernelCall & call)
{
  const auto &                        operation = static_cast<const SpectralDeconvolutionOperation &>(*call.operation);
  const Coordinates                   image = call.image.Extents();
  const Box                           box = AlignToTiles(call.output.box, operation.GetTile(image), call.image);
  const ConvolutionBlock              block = operation.MakeBlock(image, box);
  const BlockNumbers<double>          numbers(block);
  double * const                      scratch = static_cast<double *>(call.scratch);
  double * const                      kernelRows = scratch + numbers.spectrum;
  const ScaledConvolutionRows<double> rows(call, nullptr);
  RunBlock<double>(call,
                   rows,
                   block,
                   box,
                   Intersect(box, call.output.box),
                   { scratch, kernelRows + numbers.kernelRows, numbers.space, kernelRows },
                   SpectralQuotient(operation, block));
}

KernelChoice
ChooseSpectralDeconvolution(const Operation & operation, const ChunkShape & chunk)
{
  const auto &      spectral = static_cast<const SpectralDeconvolutionOperation &>(operation);
  const Coordinates image = chunk.image.Extents();
  const Box         box = AlignToTiles(chunk.outputBox, spectral.GetTile(image), chunk.image);
  KernelChoice      choice;
  choice.name = "whole";
  choice.run = RunSpectralDeconvolution;
  choice.scratchBytes =
    static_cast<std::size_t>(BlockNumbers<double>(spectral.MakeBlock(image, box)).Of(chunk.concurrency)) *
    sizeof(double);
  return choice;
}

} // namespace

void
RegisterHostSpectralDeconvolution(KernelRegistry & registry)
{
  registry.Register("deconvolution.spectral", { MakeChoosingKernel<ChooseSpectralDeconvolution>(false) });
}

} // namespace chunkwise
