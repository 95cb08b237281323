/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFftwModule.h"

#include "chunkwiseModuleFile.h"

namespace chunkwise
{

namespace
{

using GetFftwFunction = const FftwInterface * (*)(int version);

const FftwInterface *
OpenFftw(std::string & reason)
{
  const auto get = reinterpret_cast<GetFftwFunction>(
    FindInModule("ChunkwiseFftw", "fftw", "CHUNKWISE_FFTW_MODULE", "chunkwiseGetFftw", reason));
  if (!get)
  {
    return nullptr;
  }
  const FftwInterface * const fftw = get(FftwInterfaceVersion);
  reason = fftw ? "" : "the module ChunkwiseFftw is of another version of the library";
  return fftw;
}

} // namespace

const FftwInterface *
GetFftw(std::string * reason)
{
  static std::string                 why;
  static const FftwInterface * const fftw = OpenFftw(why);
  if (reason)
  {
    *reason = why;
  }
  return fftw;
}

} // namespace chunkwise
