/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFftwModule_h
#define chunkwiseFftwModule_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <string>

// FFTW is under the GPL. The code that uses it is a separate module, ChunkwiseFftw (src/fftw), that is built if
// CHUNKWISE_USE_FFTW is on and opened if somebody asks for it by name. Neither the library nor the program links it.
namespace chunkwise
{

/** Changes whenever FftwInterface does. */
constexpr int FftwInterfaceVersion = 1;

/** The functions of the module. */
struct FftwInterface
{
  /** As FFTW says it, with its instruction sets: "fftw-3.3.10-sse2-avx". */
  const char * version;
  /** A plan for lines side by side, out of place: as many as 64 bytes have real numbers, points of one another's next
   * to each other, complex numbers as FFTW has them, aligned to 64 bytes. Planned once for a length, by estimate, so
   * that bits do not depend on the moment; kept for the process' lifetime; thread-safe. nullptr if there is none. */
  const void * (*plan)(std::int64_t length, bool isDouble, bool inverse);
  /** Thread-safe. */
  void (*run)(const void * plan, bool isDouble, void * in, void * out);
};

/** The module, opened once; nullptr, and the reason, if it cannot be. CHUNKWISE_FFTW_MODULE may name its file. */
Chunkwise_EXPORT const FftwInterface *
GetFftw(std::string * reason = nullptr);

} // namespace chunkwise

#endif
