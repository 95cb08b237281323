/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fuzzTarget.h"

#include "chunkwiseAreaOperation.h"
#include "chunkwiseConvertedImage.h"
#include "chunkwiseDevice.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseNetworkFilters.h"
#endif

#include "chunkwiseDeconvolutionOperation.h"
#include "../src/enhancement/chunkwiseEnhancementRows.h"
#include "chunkwiseDistanceOperation.h"
#include "chunkwiseHessianContrast.h"
#include "chunkwiseLabelOperation.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseStreamedRun.h"
#include "chunkwiseThresholdEstimate.h"
#include "chunkwiseSizedWatershed.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

/** Sanitizers read these before main. A header that asks for far more than its file holds is a defect. */
extern "C" __attribute__((used, visibility("default"))) const char *
__asan_default_options()
{
  return "handle_abort=1:max_allocation_size_mb=512:allocator_may_return_null=0";
}

/** ITK's copy of NrrdIO leaks some hundred bytes for a header that it refuses. */
extern "C" __attribute__((used, visibility("default"))) const char *
__lsan_default_suppressions()
{
  return "leak:libITKNrrdIO\n";
}

extern "C" __attribute__((used, visibility("default"))) const char *
__ubsan_default_options()
{
  return "print_stacktrace=1";
}

namespace
{

/** Reports go here: standard error is closed while libraries run that print on it. */
[[maybe_unused]] const bool isReportSet = [] {
  __sanitizer_set_report_fd(reinterpret_cast<void *>(static_cast<std::intptr_t>(::dup(STDERR_FILENO))));
  return true;
}();

} // namespace

// Parsers name these, and call them only when something is computed: the kernels need not be compiled here.
const chunkwise::KernelRegistry &
chunkwise::GetHostKernels()
{
  std::abort();
}

const chunkwise::OutOfCoreRunner *
chunkwise::ReconstructionOperation::GetOutOfCoreRunner() const
{
  std::abort();
}
const chunkwise::OutOfCoreRunner *
chunkwise::DistanceOperation::GetOutOfCoreRunner() const
{
  std::abort();
}
const chunkwise::OutOfCoreRunner *
chunkwise::DeconvolutionOperation::GetOutOfCoreRunner() const
{
  std::abort();
}
const chunkwise::OutOfCoreRunner *
chunkwise::LabelOperation::GetOutOfCoreRunner() const
{
  std::abort();
}
const chunkwise::OutOfCoreRunner *
chunkwise::AreaOperation::GetOutOfCoreRunner() const
{
  std::abort();
}
const chunkwise::OutOfCoreRunner *
chunkwise::WatershedOperation::GetOutOfCoreRunner() const
{
  std::abort();
}
const chunkwise::OutOfCoreRunner *
chunkwise::SizedWatershedOperation::GetOutOfCoreRunner() const
{
  std::abort();
}

namespace
{

std::vector<double>
NoEstimate(const chunkwise::Operation &, chunkwise::PixelType, const chunkwise::SummaryRun &, chunkwise::Monitor *)
{
  std::abort();
}

} // namespace

chunkwise::ParameterEstimate
chunkwise::GetWienerNoiseEstimate()
{
  return { NoEstimate, nullptr };
}
chunkwise::ParameterEstimate
chunkwise::GetEntropyRangeEstimate()
{
  return { NoEstimate, nullptr };
}
chunkwise::ParameterEstimate
chunkwise::GetDiffusionGradientEstimate()
{
  return { NoEstimate, nullptr };
}
chunkwise::ParameterEstimate
chunkwise::GetHessianContrastEstimate()
{
  return { NoEstimate, nullptr };
}
chunkwise::ParameterEstimate
chunkwise::GetThresholdEstimate()
{
  return { NoEstimate, nullptr };
}

void
chunkwise::ReadConverted(ImageSource &, const BufferView &)
{
  std::abort();
}

namespace chunkwise::fuzz
{

const std::string &
GetFolder()
{
  struct Folder
  {
    std::string name;
    Folder()
    {
      const char * const memory = "/dev/shm";
      const auto         parent =
        std::filesystem::is_directory(memory) ? std::filesystem::path(memory) : std::filesystem::temp_directory_path();
      name = (parent / "chunkwise-fuzz-XXXXXX").string();
      if (!::mkdtemp(name.data()))
      {
        std::perror(name.c_str());
        std::exit(2);
      }
    }
    ~Folder()
    {
      std::error_code ignored;
      std::filesystem::remove_all(name, ignored);
    }
  };
  static const Folder folder;
  return folder.name;
}

void
WriteFile(const std::string & file, const std::string & bytes)
{
  std::ofstream stream(file, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream)
  {
    std::cerr << file << " cannot be written" << std::endl;
    std::exit(2);
  }
}

void
Check(bool isRight, const std::string & what)
{
  if (!isRight)
  {
    std::cerr << "DEFECT: " << what << std::endl;
    std::abort();
  }
}

const std::vector<Target> &
GetTargets()
{
  static const std::vector<Target> targets{
    { "metaimage", RunImage, ".mha", nullptr },
    { "metaimage-header", RunImage, ".mhd", nullptr },
    { "nrrd", RunImage, ".nrrd", nullptr },
    { "nrrd-header", RunImage, ".nhdr", nullptr },
    { "nifti", RunImage, ".nii", nullptr },
    { "nifti-compressed", RunImage, ".nii.gz", nullptr },
    { "nifti-header", RunImage, ".hdr", nullptr },
    { "mrc", RunImage, ".mrc", nullptr },
    { "vtk", RunImage, ".vtk", nullptr },
    { "gipl", RunImage, ".gipl", nullptr },
    { "tiff", RunImage, ".tif", nullptr },
    { "png", RunImage, ".png", MendChecksumsOfPng },
    { "jpeg", RunImage, ".jpg", nullptr },
    { "bmp", RunImage, ".bmp", nullptr },
    { "zarr", RunStore, ".zarr", nullptr },
    { "format-reply", RunReply, "", nullptr },
#ifdef CHUNKWISE_HAS_NETWORKS
    { "onnx", RunModel, "", nullptr },
#endif
    { "command-line", RunCommandLine, "", nullptr },
    { "value", RunValue, "", nullptr },
    { "record", RunRecord, "", nullptr },
    { "journal", RunJournal, "", nullptr },
  };
  return targets;
}

const Target &
FindTarget(const std::string & name)
{
#ifdef CHUNKWISE_HAS_NETWORKS
  AddFilters(AddNetworkFilters);
#endif
  for (const Target & target : GetTargets())
  {
    if (name == target.name)
    {
      return target;
    }
  }
  std::cerr << "'" << name << "' is no target; the targets are";
  for (const Target & target : GetTargets())
  {
    std::cerr << " " << target.name;
  }
  std::cerr << std::endl;
  std::exit(2);
}

} // namespace chunkwise::fuzz
