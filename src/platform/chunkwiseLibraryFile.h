/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLibraryFile_h
#define chunkwiseLibraryFile_h

#include "ChunkwiseExport.h"

#include <string>

// Shared libraries that are opened at run time. The CUDA module compiles this file too.
namespace chunkwise
{

/** The system's file name of a library: "libname.so", "libname.dylib" or "name.dll". */
Chunkwise_EXPORT std::string
                 GetLibraryFileName(const std::string & name);

/** Opens a shared library. Returns nullptr and the system's reason if that fails. */
Chunkwise_EXPORT void *
OpenLibrary(const std::string & path, std::string & reason);

/** The address of a symbol in an opened library; nullptr if the library lacks it. */
Chunkwise_EXPORT void *
FindSymbol(void * library, const char * name);

/** The path of the library or program that contains this address; empty if the system does not know it. */
Chunkwise_EXPORT std::string
                 FindFileOfAddress(const void * address);

} // namespace chunkwise

#endif
