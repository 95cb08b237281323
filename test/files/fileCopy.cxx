/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Copies an image from file to file in random boxes: fileCopy [--compress] [--zarr PARTS] [--levels
// METHOD [--overwrite]] [--seed N] IN OUT. With --levels OUT is IN, a store that gets levels. Losses go to the standard
// output, errors to the standard error.
#include "fileImage.h"
#include "fileTestBoxes.h"

#include <cstring>
#include <iostream>

int
main(int argc, char ** argv)
{
  using namespace chunkwise;
  files::OutputOptions     options;
  std::vector<std::string> names;
  std::string              zarr;
  std::string              levels;
  bool                     replaces = false;
  unsigned                 seed = 1;
  for (int i = 1; i < argc; ++i)
  {
    if (std::strcmp(argv[i], "--compress") == 0)
    {
      options.compress = true;
    }
    else if (std::strcmp(argv[i], "--zarr") == 0 && i + 1 < argc)
    {
      zarr = argv[++i];
    }
    else if (std::strcmp(argv[i], "--levels") == 0 && i + 1 < argc)
    {
      levels = argv[++i];
    }
    else if (std::strcmp(argv[i], "--overwrite") == 0)
    {
      replaces = true;
    }
    else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
    {
      seed = static_cast<unsigned>(std::stoul(argv[++i]));
    }
    else
    {
      names.emplace_back(argv[i]);
    }
  }
  if (names.size() != 2)
  {
    std::cerr << "fileCopy [--compress] [--zarr PARTS] [--seed N] IN OUT\n";
    return 2;
  }
  try
  {
    const auto source = files::OpenImage(names[0]);
    options.inputFiles = source->GetFiles();
    options.zarr = !levels.empty() ? files::ParseLevelOptions("--zarr", zarr, levels, replaces)
                   : zarr.empty()  ? nullptr
                                   : files::ParseZarrOptions("--zarr", zarr);
    const auto          sink = files::CreateImage(names[1], source->GetHeader(), options);
    files::test::Random random(seed);
    files::test::CopyInBoxes(*source, *sink, random);
    sink->Finish();
    for (const std::string & loss : sink->GetLosses())
    {
      std::cout << "lost: " << loss << "\n";
    }
  }
  catch (const std::exception & error)
  {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
