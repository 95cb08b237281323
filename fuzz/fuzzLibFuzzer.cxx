/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fuzzTarget.h"

#include <cstdlib>
#include <cstring>

// libFuzzer calls these. CHUNKWISE_FUZZ_TARGET names the target.

extern "C" std::size_t
LLVMFuzzerMutate(std::uint8_t * data, std::size_t size, std::size_t maxSize);

namespace
{

const chunkwise::fuzz::Target &
GetTarget()
{
  static const chunkwise::fuzz::Target & target = []() -> const chunkwise::fuzz::Target & {
    const char * const name = std::getenv("CHUNKWISE_FUZZ_TARGET");
    return chunkwise::fuzz::FindTarget(name ? name : "");
  }();
  return target;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t * data, std::size_t size)
{
  const auto & target = GetTarget();
  target.run(target, std::string(reinterpret_cast<const char *>(data), size));
  return 0;
}

extern "C" std::size_t
LLVMFuzzerCustomMutator(std::uint8_t * data, std::size_t size, std::size_t maxSize, unsigned int seed)
{
  size = LLVMFuzzerMutate(data, size, maxSize);
  const auto & target = GetTarget();
  // Some mutants keep their wrong checksums.
  if (target.mend && seed % 8 != 0)
  {
    std::string bytes(reinterpret_cast<const char *>(data), size);
    target.mend(bytes);
    std::memcpy(data, bytes.data(), size);
  }
  return size;
}
