/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDifferenceImageFilter_h
#define itkChunkwiseDifferenceImageFilter_h

#include "itkChunkwiseImageToImageFilter.h"

namespace itk
{
/** \class ChunkwiseDifferenceImageFilter
 * \brief The first input minus the second, voxel by voxel.
 *
 * Both inputs have the same largest possible region and, as itk::ImageToImageFilter asks, the same physical space.
 *
 * \par Boundary
 * None: no voxel depends on another.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double, to the same type, float or double. Integers are subtracted exactly;
 * differences outside the range of an integer output are clamped. Float and double are subtracted in their own
 * precision, NaN and infinities as everywhere.
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

  /** The images: Input1 - Input2. */
  void
  SetInput1(const TInputImage * image)
  {
    this->SetInput(0, image);
  }
  void
  SetInput2(const TInputImage * image)
  {
    this->SetInput(1, image);
  }

protected:
  ChunkwiseDifferenceImageFilter() { this->SetNumberOfRequiredInputs(2); }
  ~ChunkwiseDifferenceImageFilter() override = default;

  std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::Coordinates & imageExtent) const override;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkChunkwiseDifferenceImageFilter.hxx"
#endif

#endif
