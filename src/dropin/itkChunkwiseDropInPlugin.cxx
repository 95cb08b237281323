/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What ITK looks for in each library of the folders that ITK_AUTOLOAD_PATH names.
#include "itkChunkwiseDropInFactory.h"
#include "itkVersion.h"

#include <string>

// A test makes a plug-in of another version.
#ifndef CHUNKWISE_DROP_IN_ITK_MINOR
#  define CHUNKWISE_DROP_IN_ITK_MINOR ITK_VERSION_MINOR
#endif

#if defined(_WIN32)
#  define CHUNKWISE_PLUGIN_EXPORT __declspec(dllexport)
#else
#  define CHUNKWISE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

extern "C" CHUNKWISE_PLUGIN_EXPORT itk::ObjectFactoryBase *
                                   itkLoad()
{
  using Factory = itk::ChunkwiseDropInFactory;
  // ITK takes the object without counting the reference.
  static Factory::Pointer factory;
  using itk::Version;
  // Patches have the same ABI.
  const bool isOurs =
    Version::GetITKMajorVersion() == ITK_VERSION_MAJOR && Version::GetITKMinorVersion() == CHUNKWISE_DROP_IN_ITK_MINOR;
  factory = isOurs ? Factory::New() : Factory::NewForOtherVersion(Version::GetITKVersion());
  return factory;
}
