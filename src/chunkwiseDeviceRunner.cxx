/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseHostCopy.h"
#include "chunkwiseSchedules.h"
#include "chunkwiseStagedTransfer.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

class DeviceRunner : public ChunkRunner
{
public:
  DeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit)
    : m_Context(context)
    , m_State(state)
    , m_Device(*state.device)
    , m_Limit(memoryLimit)
    , m_Tables(state, memoryLimit)
    , m_Transfer(state, context, pinnedLimit)
    , m_Stream(m_Device.CreateStream(), [this](void * stream) { m_Device.DestroyStream(stream); })
  {}

  ~DeviceRunner() override
  {
    try
    {
      m_Device.Synchronize(m_Stream.get());
    }
    catch (const Error &)
    {
      // The step that failed has thrown; what remains is to let its memory go.
    }
  }

  void
  Run(const Step & step) override
  {
    try
    {
      Enqueue(step, Find(step.kernel));
    }
    catch (...)
    {
      // Work that was enqueued before the failure still uses the blocks that are about to be released.
      try
      {
        m_Device.Synchronize(m_Stream.get());
      }
      catch (const Error &)
      {
        // The first error is the one to report.
      }
      throw;
    }
  }

  std::string
  GetName() const override
  {
    return m_Device.GetDescription().name;
  }

private:
  const Kernel &
  Find(const std::string & name) const
  {
    const Kernel * const kernel = m_Device.GetKernels().Find(name);
    if (!kernel)
    {
      throw DeviceError(DeviceError::Kind::Failed, "look-up of kernel " + name, GetName(), 0, "it has none");
    }
    return *kernel;
  }

  void
  Enqueue(const Step & step, const Kernel & kernel)
  {
    const auto & request = m_Context.request;
    KernelCall   call;
    call.operation = request.operation.get();
    call.numberOfInputs = static_cast<int>(request.inputs.size());
    call.image = request.image;
    call.writable = step.chunk.outputBox;
    call.tables = &m_Tables;

    std::vector<ArenaBlock> inputs;
    for (std::size_t i = 0; i < request.inputs.size(); ++i)
    {
      inputs.push_back(Load(request.inputs[i], step.chunk.inputBox));
      call.inputs[i] = DenseView(inputs.back().Get(), request.inputs[i].kind, step.chunk.inputBox);
    }
    ArenaBlock output;
    if (step.writesOutput)
    {
      const Box box = step.changedSides ? Intersect(step.chunk.inputBox, request.region) : step.chunk.outputBox;
      output = step.changedSides
                 ? Load(request.output, box)
                 : ArenaBlock(m_State.memory, DenseView(nullptr, request.output.kind, box).NumberOfBytes(), m_Limit);
      call.output = DenseView(output.Get(), request.output.kind, box);
    }
    const std::size_t scratchBytes =
      kernel.scratchBytes ? kernel.scratchBytes(*request.operation, m_Context.ShapeOf(step.chunk, 1)) : 0;
    const ArenaBlock scratch(m_State.memory, scratchBytes, m_Limit);
    call.scratch = scratch.Get();
    call.scratchBytes = scratchBytes;
    ArenaBlock sideIn;
    if (step.sideIn && !step.sideIn->empty())
    {
      sideIn = ArenaBlock(m_State.memory, step.sideIn->size(), m_Limit);
      ToDevice(sideIn.Get(), step.sideIn->data(), step.sideIn->size());
      call.sideIn = sideIn.Get();
      call.sideInBytes = step.sideIn->size();
    }
    ArenaBlock sideOut;
    if (step.sideOut && !step.sideOut->empty())
    {
      sideOut = ArenaBlock(m_State.memory, step.sideOut->size(), m_Limit);
      call.sideOut = sideOut.Get();
      call.sideOutBytes = step.sideOut->size();
    }
    ArenaBlock sides;
    if (step.changedSides)
    {
      sides = ArenaBlock(m_State.memory, sizeof(std::uint32_t), m_Limit);
      m_Device.SetToZero(sides.Get(), sizeof(std::uint32_t), m_Stream.get());
      call.changedSides = static_cast<std::uint32_t *>(sides.Get());
    }

    m_Device.Launch(kernel, call, m_Stream.get());

    if (step.changedSides)
    {
      ToHost(step.changedSides, sides.Get(), sizeof(std::uint32_t));
    }
    if (sideOut.Get())
    {
      ToHost(step.sideOut->data(), sideOut.Get(), step.sideOut->size());
    }
    if (step.writesOutput)
    {
      m_Device.Synchronize(m_Stream.get());
      Store(call.output);
    }
    m_Device.Synchronize(m_Stream.get());
  }

  /** Stores what the device holds of the output: of Fixpoint with the halo, which has not changed. */
  void
  Store(const BufferView & held)
  {
    const DenseSequence to(m_Context.request.output, held.box, m_Context.request.image);
    m_Transfer.ToHost(to, held.data);
    m_Context.bytesToHost += static_cast<std::int64_t>(to.GetNumberOfBytes());
  }

  /** Small blocks come in few sizes, so that those of other steps serve again. */
  std::size_t
  RoundForReuse(std::size_t bytes) const
  {
    std::size_t step = 256;
    while (16 * step < bytes)
    {
      step *= 2;
    }
    return m_Limit == 0 || bytes < m_Limit / 16 ? (bytes + step - 1) / step * step : bytes;
  }

  ArenaBlock
  Load(const BufferView & view, const Box & box)
  {
    const DenseSequence sequence(view, box, m_Context.request.image);
    ArenaBlock          block(m_State.memory, RoundForReuse(sequence.GetNumberOfBytes()), m_Limit);
    m_Transfer.ToDevice(block.Get(), sequence);
    m_Context.bytesToDevice += static_cast<std::int64_t>(sequence.GetNumberOfBytes());
    return block;
  }

  void
  ToDevice(void * to, const void * from, std::size_t bytes)
  {
    m_Device.CopyToDevice(to, from, bytes, m_Stream.get());
    m_Device.Synchronize(m_Stream.get());
  }

  void
  ToHost(void * to, const void * from, std::size_t bytes)
  {
    m_Device.CopyToHost(to, from, bytes, m_Stream.get());
    m_Device.Synchronize(m_Stream.get());
  }

  RunContext &          m_Context;
  DeviceState &         m_State;
  Device &              m_Device;
  const std::size_t     m_Limit;
  CachedTables          m_Tables;
  StagedTransfer        m_Transfer;
  std::shared_ptr<void> m_Stream;
};

} // namespace

std::unique_ptr<ChunkRunner>
MakeDeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit)
{
  return std::unique_ptr<ChunkRunner>(new DeviceRunner(context, state, memoryLimit, pinnedLimit));
}

} // namespace chunkwise
