/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseFileToFile.h"
#include "itkRenormalizedMaximumImageFilter.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

/* The largest of 3 x 3 x 3 bytes, from file to file. */
int
main()
{
  std::string voxels(5 * 4 * 3, '\1');
  voxels.front() = '\7';
  std::ofstream("in.mha", std::ios::binary)
    << "ObjectType = Image\nNDims = 3\nDimSize = 5 4 3\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n"
    << voxels;

  const auto maximum = itk::RenormalizedMaximumImageFilter<itk::Image<unsigned char, 3>>::New();
  maximum->SetRadius(1);
  const auto run = itk::ChunkwiseFileToFile::New();
  run->SetInputFileName("in.mha");
  run->SetFilter(maximum.GetPointer());
  run->SetOutputFileName("out.mha");
  run->Update();

  for (const int z : { 0, 1 })
  {
    for (const int y : { 0, 1 })
    {
      voxels.replace(static_cast<std::size_t>((z * 4 + y) * 5), 2, "\7\7");
    }
  }
  std::ifstream     file("out.mha", std::ios::binary);
  const std::string written{ std::istreambuf_iterator<char>(file), {} };
  if (written.size() < voxels.size() || written.substr(written.size() - voxels.size()) != voxels)
  {
    std::cerr << "out.mha has other voxels\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
