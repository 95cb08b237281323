/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"

#include <cctype>

namespace chunkwise
{

namespace
{

/** The text before ": " if it is a parameter's name: "NumberOfBins". */
std::string
NameBefore(const std::string & message)
{
  std::size_t end = 0;
  while (end < message.size() && std::isalnum(static_cast<unsigned char>(message[end])))
  {
    ++end;
  }
  const bool isName =
    end > 0 && std::isupper(static_cast<unsigned char>(message[0])) && message.compare(end, 2, ": ") == 0;
  return isName ? message.substr(0, end) : std::string();
}

} // namespace

ParameterError::ParameterError(const std::string & message)
  : Error(message)
  , parameter(NameBefore(message))
{}

ParameterError::ParameterError(const std::string & parameterName, const std::string & valueText,
                               const std::string & allowedText, const std::string & verb)
  : Error(parameterName + ": " + valueText + verb + allowedText)
  , parameter(parameterName)
  , value(valueText)
  , allowed(allowedText)
{}

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
