/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuLevels_h
#define chunkwiseCpuLevels_h

#include "chunkwiseCpuLevel.h"

#include <array>
#include <cstddef>
#include <mutex>

// The sources in Chunkwise_LEVEL_SRCS are compiled once for each instruction set, in a namespace named like it. This
// header chooses a namespace at run time.

/** Declares name(), which returns TResult, in the namespace of each instruction set. */
#define CHUNKWISE_DECLARE_AT_LEVELS(TResult, name)                                                                     \
  namespace baseline                                                                                                   \
  {                                                                                                                    \
  TResult                                                                                                              \
  name();                                                                                                              \
  }                                                                                                                    \
  namespace avx2                                                                                                       \
  {                                                                                                                    \
  TResult                                                                                                              \
  name();                                                                                                              \
  }                                                                                                                    \
  namespace avx512                                                                                                     \
  {                                                                                                                    \
  TResult                                                                                                              \
  name();                                                                                                              \
  }

#if defined(CHUNKWISE_LACKS_BASELINE)
#  define CHUNKWISE_AT_BASELINE(name) nullptr
#else
#  define CHUNKWISE_AT_BASELINE(name) &baseline::name
#endif
#if defined(CHUNKWISE_HAS_AVX2)
#  define CHUNKWISE_AT_AVX2(name) &avx2::name
#else
#  define CHUNKWISE_AT_AVX2(name) nullptr
#endif
#if defined(CHUNKWISE_HAS_AVX512)
#  define CHUNKWISE_AT_AVX512(name) &avx512::name
#else
#  define CHUNKWISE_AT_AVX512(name) nullptr
#endif
/** The arguments of FunctionsAtLevels: one function for each instruction set. */
#define CHUNKWISE_AT_LEVELS(name) CHUNKWISE_AT_BASELINE(name), CHUNKWISE_AT_AVX2(name), CHUNKWISE_AT_AVX512(name)

namespace chunkwise
{

/** A table of functions for each instruction set, made when it is first asked for: even its making may need the set. */
template <typename TFunctions>
class FunctionsAtLevels
{
public:
  using Make = TFunctions (*)();

  FunctionsAtLevels(Make baseline, Make avx2, Make avx512)
    : m_Make{ baseline, avx2, avx512 }
  {}

  /** Whether this build has the instruction set with this number. */
  bool
  Has(std::size_t index) const
  {
    return m_Make[index] != nullptr;
  }

  /** The functions for the instruction set with this number, which the build and the machine must have. */
  TFunctions &
  Get(std::size_t index)
  {
    std::call_once(m_IsMade[index], [this, index] { m_Functions[index] = m_Make[index](); });
    return m_Functions[index];
  }

  /** The functions for the level that GetCpuLevel() gives. */
  const TFunctions &
  Get()
  {
    return this->Get(GetCpuLevel().index);
  }

private:
  std::array<Make, NumberOfCpuLevels>           m_Make;
  std::array<std::once_flag, NumberOfCpuLevels> m_IsMade;
  std::array<TFunctions, NumberOfCpuLevels>     m_Functions{};
};

} // namespace chunkwise

#endif
