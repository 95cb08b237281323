/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSharedMemory_h
#define chunkwiseSharedMemory_h

#include "chunkwiseGeometry.h"

namespace chunkwise
{

/** Whether two views have a byte in common. Views that are woven into each other, as every second plane and the planes
 * between them, have none. If it would take too long to tell, and for rows that are woven into each other, the answer
 * is yes. A view without memory shares none. */
Chunkwise_EXPORT bool
ShareMemory(const BufferView & a, const BufferView & b);

} // namespace chunkwise

#endif
