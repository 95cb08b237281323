/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandInputs_h
#define commandInputs_h

#include "fileImage.h"

#include <memory>
#include <string>
#include <vector>

namespace command
{

/** The value of --raw: "uint16,512,512,300,offset=64,big-endian,spacing=0.5:0.5:2". Throws ArgumentError. */
chunkwise::files::RawLayout
ParseRaw(const std::string & text);

/** Opens an image; an error names `option`. With `raw`, the value of --raw, the file is voxels alone. One whose voxels
 * have several components is an error too. */
std::unique_ptr<chunkwise::files::FileSource>
OpenInput(const std::string & file, const std::string & option, const std::string & raw = {});
/** The same for images with any number of components. */
std::unique_ptr<chunkwise::files::FileSource>
OpenInputWithComponents(const std::string & file, const std::string & option, const std::string & raw = {});

} // namespace command

#endif
