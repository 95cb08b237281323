/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCarryChain.h"

#include "chunkwiseError.h"

#include <chrono>

namespace chunkwise
{

CarryChain::CarryChain(const RunContext & context, bool isShared)
  : m_IsShared(isShared)
  , m_Axis(context.request.operation->GetSweepAxis(context.request.image.Extents()))
  , m_End(context.request.region.upper[m_Axis])
{
  const ExecutionRequest & request = context.request;
  if (!request.region.IsEmpty())
  {
    const PixelType output = request.output.kind;
    m_Bytes = request.operation->GetCarryBytes(request.region, context.inputKinds, output);
    ChunkState carry = request.operation->GetInitialCarry(request.region, context.inputKinds, output);
    Put(request.region.lower[m_Axis], carry.empty() ? Carry() : Keep(std::move(carry)));
  }
}

CarryChain::Carry
CarryChain::Await(std::int64_t index, const std::function<bool()> & stop) const
{
  std::unique_lock<std::mutex> lock(m_Mutex);
  for (;;)
  {
    const auto found = m_Known.find(index);
    if (found != m_Known.end())
    {
      return found->second;
    }
    if (stop())
    {
      throw Aborted();
    }
    // The reasons to stop have no separate signal here.
    m_Changed.wait_for(lock, std::chrono::milliseconds(5));
  }
}

void
CarryChain::Put(std::int64_t index, Carry carry)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Known[index] = std::move(carry);
  m_Changed.notify_all();
}

CarryChain::Carry
CarryChain::Keep(ChunkState data)
{
  const auto kept = std::make_shared<ChunkState>(std::move(data));
  return Carry(kept, kept->data());
}

void
CarryChain::Forget(std::int64_t index)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Known.erase(index);
}

} // namespace chunkwise
