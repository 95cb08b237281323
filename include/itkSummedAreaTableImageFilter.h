/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSummedAreaTableImageFilter_h
#define itkSummedAreaTableImageFilter_h

#include "chunkwiseSummedAreaTableOperation.h"
#include "itkChunkwiseImageToImageFilter.h"
#include "itkSummedAreaTableEnums.h"

#include <type_traits>

namespace itk
{
/** The type that a summed-area table of T has by default: 64-bit integers for integers, double for float and double. */
template <typename TPixel>
using SummedAreaTablePixelType =
  std::conditional_t<std::is_floating_point<TPixel>::value, double,
                     std::conditional_t<std::is_signed<TPixel>::value, std::int64_t, std::uint64_t>>;

/** \class SummedAreaTableImageFilter
 * \brief At each voxel the sum of all voxels whose index is not greater along any summed axis.
 *
 * Four entries of the table in 2-D, eight in 3-D, give the sum over any box. The first three axes of the image are
 * summed, the first two of a 2-D image or with SummedAxes 2, which gives each slice of a volume a separate table.
 *
 * \par Boundary
 * The sums begin at the largest possible region's first voxel, whatever the requested region.
 *
 * \par Types
 * Integers to 32- or 64-bit integers, exactly; the filter throws, naming the largest possible sum, if the output's
 * type might overflow, unless Modular is on. Anything to float or double: integers are summed exactly in 64 bits and
 * rounded once. Float and double are summed in double, but float voxels of a float table in float within blocks of 64
 * rows and 128 columns. An entry of a double table is off by at most about 32 + columns / 128 + rows / 64 + slices (the
 * last with three summed axes) half units in the last place of the sum of the magnitudes. An entry of a float table is
 * off by half a unit in its last place, which a small box far from the origin feels: its sum is a difference of large
 * entries. The table of a float image may be off by 32 half units of the sum of the magnitudes; but errors of different
 * blocks are independent, and those of blocks that a box's four corners share cancel. No sum within a block may
 * overflow float.
 *
 * \par Memory
 * Beside input and output the sums that chunks hand on, 8 bytes a voxel of one slice (with SummedAxes 2, three rows).
 * On the CPU with three summed axes one slice of 8-byte sums. On CUDA 0.1 to 0.4 bytes a voxel for the sums that tiles
 * or blocks hand on.
 *
 * \par Streaming
 * A requested region needs all voxels before it. When pieces are requested in order along the last summed axis, as a
 * writer does, the filter keeps what a piece leaves to the next, and n pieces read the image once. Any other piece
 * requests, and reads, everything before it. If axes follow the last summed one, each piece along those stands by
 * itself.
 *
 * \par Determinism
 * The same bits for every division into chunks and requested regions, number of threads and device; the CPU and CUDA
 * backends give the same bits too.
 *
 * \par Source
 * F. C. Crow, "Summed-area tables for texture mapping", SIGGRAPH 1984. On CUDA tiles are read and written once, in one
 * kernel, and hand their sums on to each other, after S. Funasaka, K. Nakano and Y. Ito, "Single kernel soft
 * synchronization technique for task arrays on CUDA-enabled GPUs, with applications", CANDAR 2017. On the CPU bands of
 * rows follow each other from strip to strip of columns, which too reads and writes once.
 *
 * \ingroup Chunkwise
 */
template <typename TInputImage, typename TOutputImage = Image<SummedAreaTablePixelType<typename TInputImage::PixelType>,
                                                              TInputImage::ImageDimension>>
class ITK_TEMPLATE_EXPORT SummedAreaTableImageFilter : public ChunkwiseImageToImageFilter<TInputImage, TOutputImage>
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(SummedAreaTableImageFilter);

  using Self = SummedAreaTableImageFilter;
  using Superclass = ChunkwiseImageToImageFilter<TInputImage, TOutputImage>;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;
  using InputImageType = TInputImage;
  using OutputImageType = TOutputImage;

  itkNewMacro(Self);

  static_assert(std::is_floating_point<typename Superclass::InputPixelType>::value
                  ? std::is_floating_point<typename Superclass::OutputPixelType>::value
                  : sizeof(typename Superclass::OutputPixelType) >= 4,
                "the output's pixels are float or double; of integers also integers of 32 or 64 bits");

  const char *
  GetFilterName() const override
  {
    return "sat";
  }
  itkOverrideGetNameOfClassMacro(SummedAreaTableImageFilter);

  /** 2 or 3: how many of the first axes are summed. Default: 3, in 2-D images 2. */
  itkSetMacro(SummedAxes, unsigned int);
  itkGetConstMacro(SummedAxes, unsigned int);

  /** Whether the voxels are squared first. Default: off. */
  itkSetMacro(Squares, bool);
  itkGetConstMacro(Squares, bool);
  itkBooleanMacro(Squares);

  /** Whether sums may wrap around modulo the size of an integer output. A box's sum that fits the output is exact even
   * then, computed modulo that size. Default: off. */
  itkSetMacro(Modular, bool);
  itkGetConstMacro(Modular, bool);
  itkBooleanMacro(Modular);

  /** How a CUDA device makes the table; the bits are the same. Default: SinglePass, the faster one of large images. */
  using MethodEnum = SummedAreaTableEnums::Method;
  itkSetEnumMacro(Method, MethodEnum);
  itkGetEnumMacro(Method, MethodEnum);

protected:
  SummedAreaTableImageFilter() = default;
  ~SummedAreaTableImageFilter() override = default;

  chunkwise::FilterParameters
  MakeParameters() const override;
  /** The operation gives the output's kind itself. */
  chunkwise::PixelType
  GetOperationKind() const override
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  std::shared_ptr<const chunkwise::Operation>
  MakeOperation(const chunkwise::FilterImage & image) const override;
  void
  GenerateInputRequestedRegion() override;
  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** The carry of the voxels before index `begin` of the swept axis, in columns and rows up to `upper`. */
  struct Carry
  {
    chunkwise::ChunkState  data;
    std::int64_t           begin{ 0 };
    chunkwise::Coordinates upper{};
    /** The input and the filter that the carry was made from. */
    const void *     input{ nullptr };
    ModifiedTimeType inputTime{ 0 };
    ModifiedTimeType filterTime{ 0 };
  };

  std::shared_ptr<chunkwise::SummedAreaTableOperation>
  MakeTable(const chunkwise::FilterImage & image) const;
  /** The output's requested region in the engine's coordinates. */
  chunkwise::Box
  GetRegion() const;
  /** Whether the kept carry is the one that `region` begins with. */
  bool
  FitsCarry(const chunkwise::Box & region) const;
  /** The time of the last change of what the input is made of. */
  ModifiedTimeType
  GetInputTime() const;

  unsigned int m_SummedAxes{ TInputImage::ImageDimension < 3 ? 2 : 3 };
  bool         m_Squares{ false };
  bool         m_Modular{ false };
  MethodEnum   m_Method{ MethodEnum::SinglePass };
  Carry        m_Carry;
};
} // namespace itk

#ifndef ITK_MANUAL_INSTANTIATION
#  include "itkSummedAreaTableImageFilter.hxx"
#endif

#endif
