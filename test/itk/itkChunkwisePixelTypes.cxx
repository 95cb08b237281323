/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Pairs of image types that a filter has not: each but number 0 must not compile, and say why.
#include "itkAbsImageAdaptor.h"
#include "itkBoxStatisticImageFilter.h"
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkChunkwiseIdentityImageFilter.h"
#include "itkHeapHMaximaImageFilter.h"
#include "itkRGBAPixel.h"
#include "itkRGBPixel.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkPrunedFFTGaussianImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

int
main()
{
  using Bytes = itk::Image<unsigned char, 3>;
  using Shorts = itk::Image<short, 3>;
  using Words = itk::Image<unsigned int, 3>;
  using Longs = itk::Image<long long, 3>;
  using Floats = itk::Image<float, 3>;
  using Colors = itk::Image<itk::RGBPixel<unsigned char>, 3>;
  using Absolute = itk::AbsImageAdaptor<Floats, float>;
#if CHUNKWISE_CASE == 0
  itk::HeapRegionalMaximaImageFilter<Floats, Bytes>::New();
  itk::ChunkwiseDifferenceImageFilter<Bytes, Shorts>::New();
  itk::RenormalizedSumImageFilter<Bytes, Words>::New();
  itk::RenormalizedMeanImageFilter<Bytes, Shorts>::New();
  itk::RenormalizedMeanImageFilter<Shorts, Bytes>::New();
  itk::RenormalizedMedianImageFilter<Floats, Bytes>::New();
  itk::RenormalizedMeanImageFilter<Colors, itk::VectorImage<float, 3>>::New();
#elif CHUNKWISE_CASE == 1
  itk::ChunkwiseIdentityImageFilter<Shorts, Bytes>::New();
#elif CHUNKWISE_CASE == 2
  itk::RenormalizedMaximumImageFilter<Absolute, Floats>::New();
#elif CHUNKWISE_CASE == 3
  itk::HeapHMaximaImageFilter<Floats, Bytes>::New();
#elif CHUNKWISE_CASE == 4
  itk::PrunedFFTGaussianImageFilter<Shorts>::New();
#elif CHUNKWISE_CASE == 5
  itk::RenormalizedSumImageFilter<Longs, Words>::New();
#elif CHUNKWISE_CASE == 6
  itk::RenormalizedMeanImageFilter<Longs, Shorts>::New();
#elif CHUNKWISE_CASE == 7
  itk::SummedAreaTableImageFilter<Bytes, Shorts>::New();
#elif CHUNKWISE_CASE == 8
  itk::RenormalizedMeanImageFilter<Colors, itk::Image<itk::RGBAPixel<unsigned char>, 3>>::New();
#elif CHUNKWISE_CASE == 9
  itk::RenormalizedMeanImageFilter<Colors, Bytes>::New();
#endif
  return 0;
}
