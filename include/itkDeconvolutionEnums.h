/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkDeconvolutionEnums_h
#define itkDeconvolutionEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class DeconvolutionEnums
 * \brief The enumerations of the deconvolution filters.
 * \ingroup Chunkwise
 */
class DeconvolutionEnums
{
public:
  /** \class Algorithm
   * \ingroup Chunkwise
   * How an estimate is corrected, or computed from spectra (kernels that vary are for iterations alone). */
  enum class Algorithm : std::uint8_t
  {
    RichardsonLucy,     ///< by the ratio of measured and expected light
    Landweber,          ///< by their difference
    ProjectedLandweber, ///< by their difference; estimates are 0 or more
    Wiener,             ///< as itk::WienerDeconvolutionImageFilter
    Tikhonov,           ///< as itk::TikhonovDeconvolutionImageFilter
    Inverse             ///< as itk::InverseDeconvolutionImageFilter
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, DeconvolutionEnums::Algorithm value);
} // namespace itk

#endif
