/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandFiles_h
#define commandFiles_h

#include "commandLine.h"

#include <filesystem>

namespace command
{

/** A file that a run reads, and the option that names it, or the image that it belongs to: "IN", "--mask". */
struct FileRead
{
  std::filesystem::path path;
  std::string           name;
};

/** All files of IN: header and voxels. Throws WorkError if it cannot be opened. */
std::vector<FileRead>
ListFilesOfInput(const CommandLine & line);

/** All files that a run reads beside IN: further images, kernels, networks with the weights that lie beside them, files
 * of numbers. Throws WorkError if an image cannot be opened. */
std::vector<FileRead>
ListFurtherFiles(const CommandLine & line);

/** The record of what was done for an image of a batch. */
std::filesystem::path
GetRecordFile(const std::string & output);

/** Before any work: throws ArgumentError if a result, or another file that the runs write, would replace a file that
 * one of them reads, or a file that another of them writes. IN may be written anew from itself, where there is one run:
 * the sink checks that it is whole. Throws ArgumentError too if --returnparameterfile cannot be written. */
void
CheckFilesOfRuns(const std::vector<CommandLine> & lines);

/** Before any step of a chain: throws ArgumentError if a file that the chain writes would replace one that a step
 * reads, or another one that it writes. IN may be replaced by OUT, unless that is a table. Throws it, or WorkError, if
 * a file beside IN cannot be read. */
void
CheckFilesOfChain(const CommandLine & line);

} // namespace command

#endif
