/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseErrors_h
#define itkChunkwiseErrors_h

#include "chunkwiseError.h"
#include "itkProcessObject.h"

#include <sstream>
#include <utility>

namespace itk
{

/** Calls `act` for a filter: errors of the engine become itk::ExceptionObject, and aborts itk::ProcessAborted. */
template <typename TAct>
void
CallChunkwise(const ProcessObject & filter, TAct && act)
{
  try
  {
    std::forward<TAct>(act)();
  }
  catch (const chunkwise::Aborted &)
  {
    ProcessAborted aborted(__FILE__, __LINE__);
    aborted.SetLocation(ITK_LOCATION);
    aborted.SetDescription("AbortGenerateData was set");
    throw aborted;
  }
  catch (const chunkwise::Error & error)
  {
    std::ostringstream message;
    message << "ITK ERROR: " << filter.GetNameOfClass() << "(" << &filter << "): " << error.what();
    throw ExceptionObject(__FILE__, __LINE__, message.str(), ITK_LOCATION);
  }
}

} // namespace itk

#endif
