/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandInputs_h
#define commandInputs_h

#include "fileImage.h"

#include <memory>
#include <string>
#include <vector>

namespace command
{

/** Opens an image; an error names `option`. */
std::unique_ptr<chunkwise::files::FileSource>
OpenInput(const std::string & file, const std::string & option);

/** What an output must know of the run: which files it must not replace, and whether it is to be small. */
chunkwise::files::OutputOptions
GetOutputOptions(const std::vector<std::shared_ptr<chunkwise::files::FileSource>> & sources, bool compress);

} // namespace command

#endif
