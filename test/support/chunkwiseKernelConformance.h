/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseKernelConformance_h
#define chunkwiseKernelConformance_h

#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOperations.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace chunkwise
{

/** Compares one kernel call on a device with the same call of a reference kernel on the host, bit for bit.
 *
 * There is no manager in between: the buffers hold just the chunk's boxes and just the scratch that the kernel
 * declares, each between guards of all bits one (NaN, or a large integer). So a kernel that reads beyond its input
 * gives other bits, and one that writes beyond its output or scratch is seen. */
class KernelConformance
{
public:
  KernelConformance(Device & device, const KernelRegistry & reference)
    : m_Device(device)
    , m_Reference(reference)
    , m_Stream(device.CreateStream())
  {}
  ~KernelConformance()
  {
    for (const auto & table : m_Tables)
    {
      m_Device.Free(table.second);
    }
    m_Device.DestroyStream(m_Stream);
  }
  KernelConformance(const KernelConformance &) = delete;
  KernelConformance &
  operator=(const KernelConformance &) = delete;

  /** One chunk of an image of `extent` voxels with random contents. `special` sprinkles infinities, NaN, subnormal
   * numbers and zeros of both signs over floating-point images. */
  template <typename TIn, typename TOut>
  void
  Compare(std::mt19937 & random, const Operation & operation, const Coordinates & extent, const Box & output,
          bool special)
  {
    const Kernel * const ours = m_Device.GetKernels().Find(operation.GetName());
    const Kernel * const theirs = m_Reference.Find(operation.GetName());
    ASSERT_TRUE(ours && theirs) << operation.GetName();
    ChunkShape shape;
    shape.image = Box::FromExtent(extent);
    shape.outputBox = output;
    shape.inputBox = InputBox(operation, output, shape.image);
    shape.numberOfInputs = 1;
    shape.inputKinds[0] = PixelKindOf<TIn>();
    shape.outputKind = PixelKindOf<TOut>();

    const std::vector<TIn> input = RandomInput<TIn>(random, shape, special);
    std::vector<TOut>      expected(static_cast<std::size_t>(output.NumberOfVoxels()));
    RunOnHost(*theirs, operation, shape, input.data(), expected.data());

    Guarded inputBlock(*this, input.size() * sizeof(TIn));
    inputBlock.Fill(input.data());
    shape.kernels = &m_Device.GetKernels();
    const std::size_t scratchBytes = ours->scratchBytes ? ours->scratchBytes(operation, shape) : 0;
    Guarded           scratchBlock(*this, scratchBytes);
    Guarded           outputBlock(*this, expected.size() * sizeof(TOut));
    Tables            tables(*this);
    KernelCall        call = MakeCall(operation, shape, inputBlock.Get(), outputBlock.Get());
    call.scratch = scratchBytes ? scratchBlock.Get() : nullptr;
    call.scratchBytes = scratchBytes;
    call.tables = &tables;
    m_Device.Launch(*ours, call, m_Stream);
    m_Device.Synchronize(m_Stream);

    const std::string where = operation.GetKey() + " " + PixelKindName(shape.inputKinds[0]) + " to " +
                              PixelKindName(shape.outputKind) + " image " + ToString(extent) + " chunk " +
                              ToString(output);
    std::vector<TOut> result(expected.size());
    std::vector<TIn>  inputAfter(input.size());
    ASSERT_TRUE(inputBlock.Fetch(inputAfter.data())) << "writes beside the input: " << where;
    ASSERT_EQ(std::memcmp(inputAfter.data(), input.data(), input.size() * sizeof(TIn)), 0) << "changes it: " << where;
    ASSERT_TRUE(scratchBlock.Fetch(nullptr)) << "writes beyond its scratch: " << where;
    ASSERT_TRUE(outputBlock.Fetch(result.data())) << "writes beyond its output: " << where;
    const BufferView resultView = DenseView(result.data(), shape.outputKind, output);
    const BufferView expectedView = DenseView(expected.data(), shape.outputKind, output);
    ForEachIndex(output, [&](const Coordinates & index) {
      const TOut a = At<TOut>(resultView, index);
      const TOut b = At<TOut>(expectedView, index);
      // The bits of a NaN are the processor's own.
      const bool bothNaN = a != a && b != b;
      ASSERT_TRUE(bothNaN || std::memcmp(&a, &b, sizeof(a)) == 0)
        << +a << ", not " << +b << " at " << ToString(index) << ": " << where;
    });
  }

private:
  static constexpr std::size_t GuardBytes = 4096;

  /** Device memory between guards, all bits one at first. */
  class Guarded
  {
  public:
    Guarded(KernelConformance & owner, std::size_t bytes)
      : m_Owner(owner)
      , m_Image(bytes + 2 * GuardBytes, 0xFF)
      , m_Memory(owner.m_Device.Allocate(m_Image.size()))
    {
      Upload();
    }
    ~Guarded() { m_Owner.m_Device.Free(m_Memory); }
    Guarded(const Guarded &) = delete;
    Guarded &
    operator=(const Guarded &) = delete;

    void *
    Get() const
    {
      return static_cast<unsigned char *>(m_Memory) + GuardBytes;
    }
    void
    Fill(const void * data)
    {
      std::memcpy(m_Image.data() + GuardBytes, data, m_Image.size() - 2 * GuardBytes);
      Upload();
    }
    /** Copies the contents to `to` (if not nullptr); false if a guard has changed. */
    bool
    Fetch(void * to)
    {
      m_Owner.m_Device.CopyToHost(m_Image.data(), m_Memory, m_Image.size(), m_Owner.m_Stream);
      m_Owner.m_Device.Synchronize(m_Owner.m_Stream);
      const auto isOne = [](unsigned char byte) { return byte == 0xFF; };
      if (to)
      {
        std::memcpy(to, m_Image.data() + GuardBytes, m_Image.size() - 2 * GuardBytes);
      }
      return std::all_of(m_Image.begin(), m_Image.begin() + GuardBytes, isOne) &&
             std::all_of(m_Image.end() - GuardBytes, m_Image.end(), isOne);
    }

  private:
    void
    Upload()
    {
      m_Owner.m_Device.CopyToDevice(m_Memory, m_Image.data(), m_Image.size(), m_Owner.m_Stream);
      m_Owner.m_Device.Synchronize(m_Owner.m_Stream);
    }

    KernelConformance &        m_Owner;
    std::vector<unsigned char> m_Image;
    void *                     m_Memory;
  };

  /** Kept while the comparison lives, as the engine keeps them while an operation is in use. */
  class Tables : public DeviceTables
  {
  public:
    explicit Tables(KernelConformance & owner)
      : m_Owner(owner)
    {}
    const void *
    Get(const std::string & key, const void * data, std::size_t bytes) override
    {
      void *& table = m_Owner.m_Tables[key];
      if (!table)
      {
        // A stream of its own: a kernel of a fake device calls this from the stream that it runs in.
        const StreamHandle stream = m_Owner.m_Device.CreateStream();
        table = m_Owner.m_Device.Allocate(bytes);
        m_Owner.m_Device.CopyToDevice(table, data, bytes, stream);
        m_Owner.m_Device.Synchronize(stream);
        m_Owner.m_Device.DestroyStream(stream);
      }
      return table;
    }

  private:
    KernelConformance & m_Owner;
  };

  class HostTables : public DeviceTables
  {
  public:
    const void *
    Get(const std::string &, const void * data, std::size_t) override
    {
      return data;
    }
  };

  /** What the engine loads for a chunk. */
  static Box
  InputBox(const Operation & operation, const Box & output, const Box & image)
  {
    const Halo halo = operation.GetHalo(image.Extents());
    Box        box = PadAndCrop(output, halo, image);
    for (int a = 0; a < MaxDimension && operation.WrapsAround(); ++a)
    {
      if (halo.lower[a] < WholeAxis && halo.upper[a] < WholeAxis)
      {
        box.lower[a] = output.lower[a] - halo.lower[a];
        box.upper[a] = output.upper[a] + halo.upper[a];
      }
    }
    return box;
  }

  template <typename T>
  static T
  RandomPixel(std::mt19937 & random, bool special)
  {
    if constexpr (std::is_integral<T>::value)
    {
      return static_cast<T>((std::uint64_t{ random() } << 32) | random());
    }
    else
    {
      if (special && random() % 50 == 0)
      {
        const T values[] = { std::numeric_limits<T>::infinity(),
                             -std::numeric_limits<T>::infinity(),
                             std::numeric_limits<T>::quiet_NaN(),
                             std::numeric_limits<T>::denorm_min(),
                             std::numeric_limits<T>::min() / T(3),
                             T(0),
                             -T(0),
                             std::numeric_limits<T>::max() };
        return values[random() % (sizeof(values) / sizeof(values[0]))];
      }
      return static_cast<T>(static_cast<double>(random()) / 4294967296.0 * 200 - 60);
    }
  }

  /** The chunk's input; where it holds what lies beyond the edge, that is the opposite side. */
  template <typename T>
  static std::vector<T>
  RandomInput(std::mt19937 & random, const ChunkShape & shape, bool special)
  {
    std::vector<T> image(static_cast<std::size_t>(shape.image.NumberOfVoxels()));
    for (T & pixel : image)
    {
      pixel = RandomPixel<T>(random, special);
    }
    const BufferView whole = DenseView(image.data(), PixelKindOf<T>(), shape.image);
    std::vector<T>   input;
    input.reserve(static_cast<std::size_t>(shape.inputBox.NumberOfVoxels()));
    ForEachIndex(shape.inputBox, [&](Coordinates index) {
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t n = shape.image.upper[a];
        index[a] = (index[a] % n + n) % n;
      }
      input.push_back(At<T>(whole, index));
    });
    return input;
  }

  static KernelCall
  MakeCall(const Operation & operation, const ChunkShape & shape, void * input, void * output)
  {
    KernelCall call;
    call.operation = &operation;
    call.inputs[0] = DenseView(input, shape.inputKinds[0], shape.inputBox);
    call.numberOfInputs = 1;
    call.output = DenseView(output, shape.outputKind, shape.outputBox);
    call.writable = shape.outputBox;
    call.image = shape.image;
    return call;
  }

  void
  RunOnHost(const Kernel & kernel, const Operation & operation, ChunkShape shape, const void * input, void * output)
  {
    shape.kernels = &m_Reference;
    const std::size_t          bytes = kernel.scratchBytes ? kernel.scratchBytes(operation, shape) : 0;
    std::vector<unsigned char> scratch(bytes + 256);
    void *                     aligned = scratch.data();
    std::size_t                room = scratch.size();
    HostTables                 tables;
    const auto                 executor = MakeThreadExecutor(1);
    KernelCall                 call = MakeCall(operation, shape, const_cast<void *>(input), output);
    call.scratch = std::align(256, bytes, aligned, room);
    call.scratchBytes = bytes;
    call.executor = executor.get();
    call.tables = &tables;
    call.kernels = &m_Reference;
    kernel.run(call);
  }

  Device &                      m_Device;
  const KernelRegistry &        m_Reference;
  StreamHandle                  m_Stream;
  std::map<std::string, void *> m_Tables;
};

} // namespace chunkwise

#endif
