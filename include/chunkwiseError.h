/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseError_h
#define chunkwiseError_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <stdexcept>
#include <string>

namespace chunkwise
{

/** Any failure of the engine. The ITK layer turns it into an itk::ExceptionObject. */
class Chunkwise_EXPORT Error : public std::runtime_error
{
public:
  using std::runtime_error::runtime_error;
};

/** A parameter that no plan can serve. The message is in the words of the table of filters, which are those of ITK's
 * setters: names as "Cutoff", and axis 0 is x. Callers whose users know other words put these in with WordMessage
 * (chunkwiseFilters.h). */
class Chunkwise_EXPORT ParameterError : public Error
{
public:
  /** `parameter` is the name before the message's first colon, if the message begins with a parameter's name. */
  explicit ParameterError(const std::string & message);
  /** "Cutoff: -1 is not a number above 0". `verb` is what stands between the value and what is allowed. */
  ParameterError(const std::string & parameterName, const std::string & valueText, const std::string & allowedText,
                 const std::string & verb = " is not ");

  std::string parameter; ///< its name; empty: no parameter alone is wrong
  std::string value;     ///< as text; empty: the message has all that is known
  std::string allowed;   ///< what the value may be; empty: the message says what is wrong
};

/** The smallest possible chunk is larger than the memory budget. */
class Chunkwise_EXPORT BudgetError : public Error
{
public:
  BudgetError(const std::string & what, std::size_t neededBytes, std::size_t budgetBytes)
    : Error(what)
    , needed(neededBytes)
    , budget(budgetBytes)
  {}
  std::size_t needed;
  std::size_t budget;
};

/** A call of a device failed. */
class Chunkwise_EXPORT DeviceError : public Error
{
public:
  enum class Kind
  {
    OutOfMemory, ///< less memory may do
    Failed,      ///< the call failed, the device may still work
    Lost         ///< the device cannot be used again by this process
  };
  /** `bytes` is the size the call asked for, 0 where it has none. */
  DeviceError(Kind kind, const std::string & call, const std::string & device, std::size_t bytes,
              const std::string & why);

  Kind        kind;
  std::string call;
  std::string device;
  std::size_t bytes;
};

/** Whether less memory may do: a budget or the memory of a device was not enough. */
Chunkwise_EXPORT bool
IsOutOfMemory(const Error & error);

/** The caller asked for the run to stop. */
class Chunkwise_EXPORT Aborted : public Error
{
public:
  Aborted()
    : Error("aborted by the caller")
  {}
};

} // namespace chunkwise

#endif
