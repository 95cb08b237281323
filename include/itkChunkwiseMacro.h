/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMacro_h
#define itkChunkwiseMacro_h

#include "itkMacro.h"

// ITK has this macro from 5.4 on; its predecessor itkTypeMacro is refused under ITK_FUTURE_LEGACY_REMOVE.
#ifndef itkOverrideGetNameOfClassMacro
#  define itkOverrideGetNameOfClassMacro(thisClass)                                                                    \
    const char * GetNameOfClass() const override                                                                       \
    {                                                                                                                  \
      return #thisClass;                                                                                               \
    }                                                                                                                  \
    ITK_MACROEND_NOOP_STATEMENT
#endif

#endif
