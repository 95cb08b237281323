/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The options of all subcommands that write an image.
#include "commandLine.h"

namespace command
{

const std::vector<CommonOption> &
GetCommonOptions()
{
  static const std::vector<CommonOption> options = [] {
    const std::string        real = "the input's, or floating point if results do not fit it";
    std::vector<std::string> types{ "auto" };
    for (int i = 0; i < chunkwise::NumberOfPixelTypes; ++i)
    {
      types.emplace_back(chunkwise::PixelTypeName(static_cast<chunkwise::PixelType>(i)));
    }
    return std::vector<CommonOption>{
      { "backend", "auto|cpu|cuda", "Device that computes (auto)", { "auto", "cpu", "cuda" }, true },
      { "devices", "N,...", "Ordinals of the CUDA devices to use (all)", {}, true },
      { "memory", "SIZE", "Host memory for the run, as 512M or 1.5G (half of the available memory)", {}, true },
      { "device-memory", "SIZE", "Memory of each device (80% of what is free)", {}, true },
      { "divisions", "N", "Stream in this many divisions, whatever the memory" },
      { "threads", "N", "Threads of the CPU (all)", {}, true },
      { "raw",
        "TYPE,X,Y,Z",
        "IN has no header: voxels of this type alone, in this order, as uint16,512,512,300; beside these also "
        "offset=BYTES before the voxels, big-endian and spacing=X:Y:Z" },
      { "region", "X,Y,Z,SX,SY,SZ", "Compute only this region: start index, then size, for each axis (all)" },
      { "output-type", "TYPE", "uint8, int8, ... uint64, int64, float32 or float64 (" + real + ")", types, true },
      { "compress", "", "Compress what is written, where OUT's format can; .gz always is" },
      { "zarr",
        "PART,...",
        "How a store of OME-Zarr is written: 0.5 or 0.4, chunks=XxYxZ, shards=XxYxZ or shards=none, codec=NAME[:LEVEL] "
        "with zstd, blosc, blosc-lz4, gzip, zlib, lz4 or none, pyramid=NAME with mean, mode, min, max, median or "
        "gaussian (0.5, codec=zstd:3)" },
      { "out",
        "PATTERN",
        "Several images: where their results go, with {stem}, {name} or {parent} of each image's file; what an earlier "
        "run has done is left as it is" },
      { "overwrite", "", "Replace OUT without a question; only terminals are asked" },
      { "redo", "", "With --out: compute again what an earlier run has done" },
      { "resume",
        "",
        "If the run ends early, keep what is written, and go on from there when the same command runs again: for OUT "
        "that is a store of Zarr, and for deconvolution" },
      { "quiet", "", "No progress and no warnings" },
      { "verbose", "", "Print plan, backend, time and peak memory" },
      { "untrusted", "", "Read no format whose reader is not fuzzed: neither DICOM nor HDF5" },
      { "json", "", "Print the plan, or the report of the run, as JSON" },
      { "progress", "bar|xml", "A bar on a terminal, or lines for hosts of command-line modules (bar)" },
      { "returnparameterfile", "FILE", "Write what the run took there, as lines \"name = value\"" },
      { "xml", "", "Print the description of the filter for hosts of command-line modules, and nothing else" }
    };
  }();
  return options;
}

} // namespace command
