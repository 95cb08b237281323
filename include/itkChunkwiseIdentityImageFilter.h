/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseIdentityImageFilter_h
#define itkChunkwiseIdentityImageFilter_h

#include "itkChunkwiseImageToImageFilter.h"

namespace itk
{
/** \class ChunkwiseIdentityImageFilter
 * \brief Copies an image through the Chunkwise engine.
 *
 * The skeleton of a Chunkwise filter, and the way to measure what the engine itself costs. A new filter is a class like
 * this one: a name, the setters of its parameters (each calls Modified), checks of them in VerifyPreconditions,
 * PrintSelf, and MakeOperation, which hands the parameters to an operation of the engine. A filter with a window
 * derives from ChunkwiseWindowImageFilter instead.
 *
 * \par Boundary
 * None: an output voxel depends on the input voxel at its place.
 *
 * \par Types
 * The input's pixel type, float or double. Conversion to float and double rounds to nearest, ties to even.
 *
 * \par Memory
 * No scratch.
 *
 * \par Streaming
 * Requests exactly the output's requested region.
 *
 * \par Determinism
 * The same bits on the CPU and on CUDA.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseIdentityImageFilter : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseIdentityImageFilter);

  using Self = ChunkwiseIdentityImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseIdentityImageFilter);

  static_assert(Superclass::GivesSameTypeOrReal, "the output's pixels are of the input's type, float or double");

  const char *
  GetFilterName() const override
  {
    return "identity";
  }

protected:
  ChunkwiseIdentityImageFilter() = default;
  ~ChunkwiseIdentityImageFilter() override = default;
};
} // namespace itk

#endif
