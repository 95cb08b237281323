/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseModuleFile_h
#define chunkwiseModuleFile_h

#include "ChunkwiseExport.h"

#include <string>

namespace chunkwise
{

/** The folder of the library that this code is in, with its final slash; empty if it cannot be told. */
Chunkwise_EXPORT std::string
                 GetLibraryFolder();

/** The symbol of a module that is opened at run time: of the file that the environment variable names, or of one called
 * `name` ("ChunkwiseCuda") beside this library, in the folder `subfolder` beside that of the library, or where modules
 * are installed. nullptr, and the reasons, if none has it. */
Chunkwise_EXPORT void *
FindInModule(const std::string & name, const char * subfolder, const char * variable, const char * symbol,
             std::string & reason);

} // namespace chunkwise

#endif
