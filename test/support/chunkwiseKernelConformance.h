/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseKernelConformance_h
#define chunkwiseKernelConformance_h

#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRegions.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace chunkwise
{

/** One kernel call to compare: a chunk of an image with random contents. */
struct ConformanceTrial
{
  const Operation &      operation;
  std::vector<PixelType> inputs;
  PixelType              output;
  Coordinates            extent;
  Box                    chunk;
  /** Infinities, NaN, subnormal numbers and zeros of both signs are sprinkled over floating-point images. */
  bool special{ false };
  /** For operations that state a bound: how far results may be off, in units of the largest magnitude of the input; 0:
   * not at all. */
  double     tolerance{ 0 };
  KernelRole role{ &KernelSet::compute };
  /** The last image has weights: no negative, infinite or NaN numbers, and many zeros. */
  bool lastIsWeights{ false };
};

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

  /** The kernels that were compared, as KernelRegistry::Describe names them. */
  const std::set<std::string> &
  GetCompared() const
  {
    return m_Compared;
  }

  /** Whether the device runs the host's kernels. */
  bool
  IsOfHostKernels() const
  {
    return &m_Device.GetKernels() == &m_Reference;
  }

  template <typename TIn, typename TOut>
  void
  Compare(std::mt19937 & random, const Operation & operation, const Coordinates & extent, const Box & output,
          bool special)
  {
    Compare(random, { operation, { PixelTypeOf<TIn>() }, PixelTypeOf<TOut>(), extent, output, special });
  }

  void
  Compare(std::mt19937 & random, const ConformanceTrial & trial)
  {
    const std::string    name = KernelRegistry::Describe(trial.operation.GetName(), trial.role);
    const Kernel * const ours = m_Device.GetKernels().Find(trial.operation.GetName(), trial.role);
    const Kernel * const theirs = m_Reference.Find(trial.operation.GetName(), trial.role);
    ASSERT_TRUE(ours && theirs) << name;
    const std::string where = name + " " + trial.operation.GetKey() + " " + PixelTypeName(trial.inputs[0]) + " to " +
                              PixelTypeName(trial.output) + " image " + ToString(trial.extent) + " chunk " +
                              ToString(trial.chunk);
    std::vector<Bytes> images;
    for (const PixelType kind : trial.inputs)
    {
      images.push_back(RandomImage(random, kind, trial.extent, trial.special));
    }
    if (trial.lastIsWeights)
    {
      MakeWeights(random, trial.inputs.back(), images.back());
    }
    const Contents before = ContentsOf(trial, images);
    const Contents expected = RunOnHost(*theirs, trial, before);
    Contents       result;
    ASSERT_NO_FATAL_FAILURE(RunOnDevice(*ours, trial, before, result, where));
    m_Compared.insert(name);
    EXPECT_TRUE(result.sideOut == expected.sideOut) << "another carry: " << where;
    // Beside layers of others that are no fixed point a kernel of Fixpoint may stop where it likes: only its guards
    // count.
    const bool isActive = trial.operation.GetSchedule() == Schedule::Fixpoint && trial.role == &KernelSet::compute &&
                          !(before.writable == before.shape.image);
    if (!before.omitsOutput && !isActive)
    {
      double largest = 0;
      for (std::size_t i = 0; trial.tolerance > 0 && i < images.size(); ++i)
      {
        largest = std::max(largest, LargestMagnitude(trial.inputs[i], images[i]));
      }
      DispatchPixelType(trial.output, [&](auto pixel) {
        CompareOutputs<decltype(pixel)>(before.writable, result, expected, trial.tolerance * largest, where);
      });
    }
  }

private:
  static constexpr std::size_t GuardBytes = 4096;

  using Bytes = std::vector<unsigned char>;

  /** The contents of memory before a call, and after it. */
  struct Contents
  {
    ChunkShape         shape;
    std::vector<Bytes> inputs;
    Bytes              output;
    Box                outputBox{};
    Box                writable{};
    bool               omitsOutput{ false };
    Bytes              sideIn;
    Bytes              sideOut;
  };

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
      const std::size_t bytes = m_Image.size() - 2 * GuardBytes;
      if (bytes > 0)
      {
        std::memcpy(m_Image.data() + GuardBytes, data, bytes);
      }
      Upload();
    }
    /** Copies the contents to `to` (if not nullptr); false if a guard has changed. */
    bool
    Fetch(void * to)
    {
      m_Owner.m_Device.CopyToHost(m_Image.data(), m_Memory, m_Image.size(), m_Owner.m_Stream);
      m_Owner.m_Device.Synchronize(m_Owner.m_Stream);
      const auto isOne = [](unsigned char byte) { return byte == 0xFF; };
      if (to && m_Image.size() > 2 * GuardBytes)
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
        // A separate stream: a kernel of a fake device calls this from the stream that it runs in.
        const StreamHandle stream = m_Owner.m_Device.CreateStream();
        table = m_Owner.m_Device.Allocate(bytes);
        m_Owner.m_Device.CopyToDevice(table, data, bytes, stream);
        m_Owner.m_Device.Synchronize(stream);
        m_Owner.m_Device.DestroyStream(stream);
      }
      return table;
    }
    const void *
    GetMade(const std::string & key, std::size_t bytes, const std::function<void(void *)> & fill) override
    {
      void *& table = m_Owner.m_Tables[key];
      if (!table)
      {
        table = m_Owner.m_Device.Allocate(bytes);
        fill(table);
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

  /** The box that the engine loads for a chunk. */
  static Box
  InputBox(const Operation & operation, const Box & output, const Box & image)
  {
    if (operation.GetOutputGrid())
    {
      return GetInputBox(operation, output, image);
    }
    const Halo halo = operation.GetHalo(image.Extents());
    const Box  tiles = AlignToTiles(output, operation.GetTile(image.Extents()), image);
    Box        box = PadAndCrop(tiles, halo, image);
    for (int a = 0; a < MaxDimension && operation.WrapsAround(); ++a)
    {
      if (halo.lower[a] < WholeAxis && halo.upper[a] < WholeAxis)
      {
        box.lower[a] = tiles.lower[a] - halo.lower[a];
        box.upper[a] = tiles.upper[a] + halo.upper[a];
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

  static Bytes
  RandomImage(std::mt19937 & random, PixelType kind, const Coordinates & extent, bool special)
  {
    const auto voxels = static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels());
    Bytes      image(voxels * PixelSize(kind));
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (std::size_t i = 0; i < voxels; ++i)
      {
        const T value = RandomPixel<T>(random, special);
        std::memcpy(image.data() + i * sizeof(T), &value, sizeof(T));
      }
    });
    return image;
  }

  static void
  MakeWeights(std::mt19937 & random, PixelType kind, Bytes & image)
  {
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (std::size_t i = 0; i < image.size(); i += sizeof(T))
      {
        T value;
        std::memcpy(&value, image.data() + i, sizeof(T));
        const bool isWeight = value >= T(0) && (std::is_integral<T>::value || value < T(1000));
        value = random() % 3 == 0 || !isWeight ? T(0) : value;
        std::memcpy(image.data() + i, &value, sizeof(T));
      }
    });
  }

  static double
  LargestMagnitude(PixelType kind, const Bytes & image)
  {
    double largest = 0;
    DispatchPixelType(kind, [&](auto pixel) {
      using T = decltype(pixel);
      for (std::size_t i = 0; i < image.size() / sizeof(T); ++i)
      {
        T value;
        std::memcpy(&value, image.data() + i * sizeof(T), sizeof(T));
        largest = std::max(largest, std::fabs(static_cast<double>(value)));
      }
    });
    return largest;
  }

  /** A box of an image; beyond the edge is the opposite side. */
  static Bytes
  Part(const Bytes & image, PixelType kind, const Coordinates & extent, const Box & box)
  {
    const std::size_t size = PixelSize(kind);
    const BufferView  whole = DenseView(const_cast<unsigned char *>(image.data()), kind, Box::FromExtent(extent));
    Bytes             part;
    part.reserve(static_cast<std::size_t>(box.NumberOfVoxels()) * size);
    ForEachIndex(box, [&](Coordinates index) {
      for (int a = 0; a < MaxDimension; ++a)
      {
        index[a] = (index[a] % extent[a] + extent[a]) % extent[a];
      }
      const unsigned char * const pixel = image.data() + static_cast<std::size_t>(whole.Offset(index)) * size;
      part.insert(part.end(), pixel, pixel + size);
    });
    return part;
  }

  /** The contents that the engine gives a kernel of a schedule. */
  Contents
  ContentsOf(const ConformanceTrial & trial, const std::vector<Bytes> & images)
  {
    const Operation & operation = trial.operation;
    const KernelRole  role = trial.role;
    const bool        isFixpoint = operation.GetSchedule() == Schedule::Fixpoint;
    const bool        isWhole = role == &KernelSet::solveGlobally || role == &KernelSet::finalizeRegion;
    const bool        isVoxelwise = role == &KernelSet::begin || role == &KernelSet::finish;
    Contents          contents;
    ChunkShape &      shape = contents.shape;
    shape.image = Box::FromExtent(trial.extent);
    shape.outputBox = isWhole ? shape.image : trial.chunk;
    shape.inputBox = isVoxelwise ? trial.chunk : InputBox(operation, shape.outputBox, shape.image);
    shape.numberOfInputs = static_cast<int>(trial.inputs.size());
    shape.outputKind = trial.output;
    for (std::size_t i = 0; i < trial.inputs.size(); ++i)
    {
      shape.inputKinds[i] = trial.inputs[i];
      contents.inputs.push_back(Part(images[i], trial.inputs[i], trial.extent, shape.inputBox));
    }
    contents.writable = shape.outputBox;
    contents.outputBox = isFixpoint ? shape.inputBox : shape.outputBox;
    const std::size_t size = PixelSize(trial.output);
    contents.output.assign(static_cast<std::size_t>(contents.outputBox.NumberOfVoxels()) * size, 0xFF);
    if (isFixpoint && role != &KernelSet::begin)
    {
      contents.output = StateOf(trial, images, contents.outputBox);
    }
    if (operation.GetSchedule() == Schedule::Sweep)
    {
      contents.omitsOutput = role == &KernelSet::advance;
      contents.sideIn = CarryBefore(trial, images);
      contents.sideOut.assign(contents.omitsOutput ? contents.sideIn.size() : 0, 0xFF);
    }
    if (role == &KernelSet::spilled)
    {
      // Memory that a device's kernels reach.
      contents.sideOut.assign(m_Device.GetKernels().FindSet(operation.GetName())->spilledBytes(operation, shape), 0xFF);
    }
    return contents;
  }

  /** The state with which the host's kernel begins a Fixpoint. */
  Bytes
  StateOf(const ConformanceTrial & trial, const std::vector<Bytes> & images, const Box & box)
  {
    ConformanceTrial begin = trial;
    begin.chunk = box;
    begin.role = &KernelSet::begin;
    const Kernel & kernel = m_Reference.Get(trial.operation.GetName(), "the test", begin.role);
    return RunOnHost(kernel, begin, ContentsOf(begin, images)).output;
  }

  /** The carry that the host's kernel hands on to a chunk of a Sweep. */
  Bytes
  CarryBefore(const ConformanceTrial & trial, const std::vector<Bytes> & images)
  {
    const int         axis = trial.operation.GetSweepAxis(trial.extent);
    const std::size_t bytes = trial.operation.GetCarryBytes(trial.chunk, trial.inputs, trial.output);
    if (trial.chunk.lower[axis] == 0)
    {
      Bytes carry = trial.operation.GetInitialCarry(trial.chunk, trial.inputs, trial.output);
      carry.resize(bytes);
      return carry;
    }
    ConformanceTrial before = trial;
    before.chunk.lower[axis] = 0;
    before.chunk.upper[axis] = trial.chunk.lower[axis];
    before.role = &KernelSet::advance;
    const Kernel & kernel = m_Reference.Get(trial.operation.GetName(), "the test", before.role);
    return RunOnHost(kernel, before, ContentsOf(before, images)).sideOut;
  }

  static KernelCall
  MakeCall(const ConformanceTrial & trial, const Contents & contents, const std::vector<void *> & inputs, void * output)
  {
    KernelCall call;
    call.operation = &trial.operation;
    call.numberOfInputs = contents.shape.numberOfInputs;
    for (int i = 0; i < call.numberOfInputs; ++i)
    {
      call.inputs[i] =
        DenseView(inputs[static_cast<std::size_t>(i)], contents.shape.inputKinds[i], contents.shape.inputBox);
    }
    call.output = DenseView(output, contents.shape.outputKind, contents.outputBox);
    call.writable = contents.writable;
    call.image = contents.shape.image;
    if (contents.omitsOutput)
    {
      call.OmitOutput();
    }
    return call;
  }

  Contents
  RunOnHost(const Kernel & kernel, const ConformanceTrial & trial, Contents contents)
  {
    contents.shape.kernels = &m_Reference;
    const std::size_t   bytes = kernel.scratchBytes ? kernel.scratchBytes(trial.operation, contents.shape) : 0;
    Bytes               scratch(bytes + 256);
    void *              aligned = scratch.data();
    std::size_t         room = scratch.size();
    std::uint32_t       changedSides = 0;
    std::vector<void *> inputs;
    for (Bytes & input : contents.inputs)
    {
      inputs.push_back(input.data());
    }
    HostTables tables;
    const auto executor = MakeThreadExecutor(1);
    KernelCall call = MakeCall(trial, contents, inputs, contents.output.data());
    call.scratch = std::align(256, bytes, aligned, room);
    call.scratchBytes = bytes;
    call.sideIn = contents.sideIn.data();
    call.sideInBytes = contents.sideIn.size();
    call.sideOut = contents.sideOut.empty() ? nullptr : contents.sideOut.data();
    call.sideOutBytes = contents.sideOut.size();
    call.changedSides = &changedSides;
    call.executor = executor.get();
    call.tables = &tables;
    call.kernels = &m_Reference;
    const char * chosen = nullptr;
    call.chosen = &chosen;
    kernel.run(call);
    CheckChoice(kernel, trial, contents.shape, chosen);
    return contents;
  }

  void
  RunOnDevice(const Kernel & kernel, const ConformanceTrial & trial, const Contents & before, Contents & after,
              const std::string & where)
  {
    std::vector<std::unique_ptr<Guarded>> inputBlocks;
    std::vector<void *>                   inputs;
    for (const Bytes & input : before.inputs)
    {
      inputBlocks.push_back(std::make_unique<Guarded>(*this, input.size()));
      inputBlocks.back()->Fill(input.data());
      inputs.push_back(inputBlocks.back()->Get());
    }
    ChunkShape shape = before.shape;
    shape.kernels = &m_Device.GetKernels();
    const std::size_t scratchBytes = kernel.scratchBytes ? kernel.scratchBytes(trial.operation, shape) : 0;
    Guarded           scratchBlock(*this, scratchBytes);
    Guarded           outputBlock(*this, before.output.size());
    outputBlock.Fill(before.output.data());
    Guarded sideIn(*this, before.sideIn.size());
    sideIn.Fill(before.sideIn.data());
    Guarded             sideOut(*this, before.sideOut.size());
    const std::uint32_t none = 0;
    Guarded             changedSides(*this, sizeof(none));
    changedSides.Fill(&none);
    Tables     tables(*this);
    KernelCall call = MakeCall(trial, before, inputs, outputBlock.Get());
    call.scratch = scratchBytes ? scratchBlock.Get() : nullptr;
    call.scratchBytes = scratchBytes;
    call.sideIn = before.sideIn.empty() ? nullptr : sideIn.Get();
    call.sideInBytes = before.sideIn.size();
    call.sideOut = before.sideOut.empty() ? nullptr : sideOut.Get();
    call.sideOutBytes = before.sideOut.size();
    call.changedSides = static_cast<std::uint32_t *>(changedSides.Get());
    call.tables = &tables;
    const char * chosen = nullptr;
    call.chosen = &chosen;
    m_Device.Launch(kernel, call, m_Stream);
    m_Device.Synchronize(m_Stream);
    CheckChoice(kernel, trial, shape, chosen);

    after = before;
    for (std::size_t i = 0; i < inputs.size(); ++i)
    {
      ASSERT_TRUE(inputBlocks[i]->Fetch(after.inputs[i].data())) << "writes beside the input: " << where;
      ASSERT_TRUE(after.inputs[i] == before.inputs[i]) << "changes its input: " << where;
    }
    ASSERT_TRUE(scratchBlock.Fetch(nullptr)) << "writes beyond its scratch: " << where;
    ASSERT_TRUE(outputBlock.Fetch(after.output.data())) << "writes beyond its output: " << where;
    ASSERT_TRUE(sideIn.Fetch(after.sideIn.data())) << "writes beside the carry: " << where;
    ASSERT_TRUE(after.sideIn == before.sideIn) << "changes the carry: " << where;
    ASSERT_TRUE(sideOut.Fetch(after.sideOut.data())) << "writes beyond the carry: " << where;
    ASSERT_TRUE(changedSides.Fetch(nullptr)) << "writes beside the changed sides: " << where;
  }

  /** Expects that a kernel with several algorithms ran the one that was planned. */
  static void
  CheckChoice(const Kernel & kernel, const ConformanceTrial & trial, const ChunkShape & shape, const char * ran)
  {
    if (kernel.choose)
    {
      const KernelChoice planned = kernel.choose(trial.operation, shape);
      EXPECT_EQ(std::string(planned.name), ran ? ran : "nothing") << trial.operation.GetKey();
      EXPECT_EQ(kernel.scratchBytes(trial.operation, shape), planned.scratchBytes) << planned.name;
      EXPECT_TRUE(!kernel.cost || kernel.cost(trial.operation, shape) == planned.cost) << planned.name;
    }
  }

  static bool
  IsInside(const Box & box, const Coordinates & index)
  {
    bool isInside = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      isInside = isInside && index[a] >= box.lower[a] && index[a] < box.upper[a];
    }
    return isInside;
  }

  /** Voxels beyond `writable` are as they were. */
  template <typename T>
  static void
  CompareOutputs(const Box & writable, const Contents & result, const Contents & expected, double tolerance,
                 const std::string & where)
  {
    const auto viewOf = [](const Contents & contents) {
      return DenseView(
        const_cast<unsigned char *>(contents.output.data()), contents.shape.outputKind, contents.outputBox);
    };
    const BufferView resultView = viewOf(result);
    const BufferView expectedView = viewOf(expected);
    ForEachIndex(result.outputBox, [&](const Coordinates & index) {
      const T a = At<T>(resultView, index);
      const T b = At<T>(expectedView, index);
      // The bits of a NaN are the processor's own.
      const bool bothNaN = a != a && b != b;
      const bool isSame = bothNaN || std::memcmp(&a, &b, sizeof(a)) == 0;
      const auto off = std::fabs(static_cast<long double>(a) - static_cast<long double>(b));
      // Rounded to integers, numbers on either side of a half are one apart.
      const double bound = tolerance + (tolerance > 0 && std::is_integral<T>::value ? 1 : 0);
      const bool   isNear = tolerance > 0 && IsInside(writable, index) && off <= static_cast<long double>(bound);
      ASSERT_TRUE(isSame || isNear) << +a << ", not " << +b << " at " << ToString(index) << ": " << where;
    });
  }

  Device &                      m_Device;
  const KernelRegistry &        m_Reference;
  StreamHandle                  m_Stream;
  std::map<std::string, void *> m_Tables;
  std::set<std::string>         m_Compared;
};

} // namespace chunkwise

#endif
