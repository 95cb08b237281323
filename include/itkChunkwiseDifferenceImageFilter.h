/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDifferenceImageFilter_h
#define itkChunkwiseDifferenceImageFilter_h

#include "itkChunkwiseImageToImageFilter.h"

namespace itk
{
/** \class ChunkwiseDifferenceImageFilter
 * \brief The first input minus the second, voxel by voxel.
 *
 * A voxel is subtracted from that of the same index. Both inputs have, as itk::ImageToImageFilter asks, the same
 * physical space; the second covers the largest possible region of the first.
 *
 * \par Boundary
 * None: no voxel depends on another.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double; integers of up to 32 bits to any
 * integers. Integers are subtracted exactly; differences outside the range of an integer output are clamped, with a
 * warning if its type is not the inputs'. Float and double are subtracted in their own precision, NaN and infinities as
 * everywhere.
 *
 * \par Memory
 * A chunk needs its inputs and its output.
 *
 * \par Streaming
 * Requests the output's requested region of both inputs.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * ElementWiseDifference of the Hydra Image Processor: E. Wait, M. Winter, A. R. Cohen, "Hydra image processor: 5-D GPU
 * image analysis library with MATLAB and Python wrappers", Bioinformatics 35(24), 2019.
 *
 * \sa SubtractImageFilter
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT ChunkwiseDifferenceImageFilter : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseDifferenceImageFilter);

  using Self = ChunkwiseDifferenceImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseDifferenceImageFilter);

  static_assert(
    Superclass::GivesSameTypeOrRealOrInteger,
    "the output's pixels are of the input's type, float or double; of any but 64-bit integers any integers");

  const char *
  GetFilterName() const override
  {
    return "difference";
  }

  /** The images: Input1 - Input2. */
  void
  SetInput1(const TInputImage * image)
  {
    this->SetInput(0, image);
  }
  const TInputImage *
  GetInput1() const
  {
    return this->GetInput(0);
  }
  void
  SetInput2(const TInputImage * image)
  {
    this->SetInput(1, image);
  }
  const TInputImage *
  GetInput2() const
  {
    return this->GetInput(1);
  }

protected:
  ChunkwiseDifferenceImageFilter() { this->SetNumberOfRequiredInputs(2); }
  ~ChunkwiseDifferenceImageFilter() override = default;
};
} // namespace itk

#endif
