/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"

namespace chunkwise
{

DeviceError::DeviceError(Kind errorKind, const std::string & failedCall, const std::string & deviceName,
                         std::size_t askedBytes, const std::string & why)
  : Error(failedCall + (askedBytes ? " of " + std::to_string(askedBytes) + " bytes" : "") + " failed on " + deviceName +
          ": " + why)
  , kind(errorKind)
  , call(failedCall)
  , device(deviceName)
  , bytes(askedBytes)
{}

bool
IsOutOfMemory(const Error & error)
{
  const auto * const failure = dynamic_cast<const DeviceError *>(&error);
  return failure ? failure->kind == DeviceError::Kind::OutOfMemory
                 : dynamic_cast<const BudgetError *>(&error) != nullptr;
}

} // namespace chunkwise
