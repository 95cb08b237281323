/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionImageFilter_h
#define itkHeapReconstructionImageFilter_h

#include "chunkwiseReconstructionOperation.h"
#include "itkChunkwiseImageToImageFilter.h"
#include "itkHeapReconstructionEnums.h"

namespace itk
{
/** \class HeapReconstructionImageFilter
 * \brief Base of the filters that are a morphological reconstruction.
 *
 * Values are compared as they are, without tolerance: plateaus of floats that are a few ulp apart are different ones,
 * where the filters of ITK 5 may take them for one. -0 counts as +0.
 *
 * \par Boundary
 * The image's edge lets nothing through; no value beyond it is assumed.
 *
 * \par Types
 * Integers of 8 to 64 bits, float and double; inputs and output are of one type. Exact: what is reconstructed is one of
 * the values of the inputs. A NaN in the mask lets nothing through and stays; a NaN in the marker marks nothing, and
 * where nothing else arrives the result is NaN.
 *
 * \par Memory
 * On the CPU two images more, and queues of up to 9 bytes a voxel for the parts that threads work at. On a device the
 * inputs and the output of a chunk, and 20 bytes a voxel more for a spanning forest, which Auto uses where the whole
 * image fits with it; heap clusters take twice the image (at least 4 bytes a voxel) and 4 bytes a voxel. A
 * reconstruction from one image only, as h-maxima, needs no marker image.
 *
 * \par Streaming
 * A voxel depends on the whole image: each update computes all of it along the spatial axes. Slices along the other
 * axes are independent. The work is done in chunks that fit the device, once each, and then where something new comes
 * in from others. Values that wind through many chunks are brought from one to the next by the CPU: up to 40 bytes for
 * each of the voxels at the borders of tiles, 0.4% of a plane and 4% of a volume.
 *
 * \par Determinism
 * The result is unique: the same bits for every division into chunks, number of threads and device, on both backends.
 *
 * \par Source
 * L. Vincent, "Morphological grayscale reconstruction in image analysis: applications and efficient algorithms", IEEE
 * Transactions on Image Processing 2(2), 1993. Largest values first, from one heap for each part of the image, as in
 * the parallel heap clusters of MR_GPU; on the CPU the heaps are radix heaps.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = TInputImage>
class ITK_TEMPLATE_EXPORT HeapReconstructionImageFilter : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(HeapReconstructionImageFilter);

  using Self = HeapReconstructionImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkOverrideGetNameOfClassMacro(HeapReconstructionImageFilter);

  static constexpr unsigned int ImageDimension = Superclass::ImageDimension;
  using typename Superclass::InputPixelType;
  using typename Superclass::OutputPixelType;

  /** Neighbours share a face (off, the default), or a face, an edge or a corner (on). */
  itkSetMacro(FullyConnected, bool);
  itkGetConstMacro(FullyConnected, bool);
  itkBooleanMacro(FullyConnected);

  /** Neighbours lie along the first axes, this many, at most three; the others are independent. Default: all of up to
   * three. */
  itkSetMacro(SpatialDimension, unsigned int);
  itkGetConstMacro(SpatialDimension, unsigned int);

  /** How a CUDA device does it; the CPU has one way. Default: Auto. */
  using MethodEnum = HeapReconstructionEnums::Method;
  itkSetEnumMacro(Method, MethodEnum);
  itkGetEnumMacro(Method, MethodEnum);

  /** For the method ParallelHeapCluster: the number of heaps, at most as many as the device can run at once, and of
   * pixels in a heap's node, at most 256. Default: 0, which chooses. */
  itkSetMacro(NumberOfHeaps, unsigned int);
  itkGetConstMacro(NumberOfHeaps, unsigned int);
  itkSetMacro(HeapNodeSize, unsigned int);
  itkGetConstMacro(HeapNodeSize, unsigned int);

protected:
  HeapReconstructionImageFilter() = default;
  ~HeapReconstructionImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  void
  EnlargeOutputRequestedRegion(DataObject * output) override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  bool         m_FullyConnected{ false };
  unsigned int m_SpatialDimension{ ImageDimension < 3 ? ImageDimension : 3 };
  MethodEnum   m_Method{ MethodEnum::Auto };
  unsigned int m_NumberOfHeaps{ 0 };
  unsigned int m_HeapNodeSize{ 0 };
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkHeapReconstructionImageFilter.hxx"
#endif

#endif
