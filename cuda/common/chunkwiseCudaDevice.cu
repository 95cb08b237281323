/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDevice.h"

#include "chunkwiseCudaCalls.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseError.h"

#include <algorithm>
#include <cstdlib>
#include <cuda_runtime.h>
#include <limits>

namespace chunkwise
{

namespace
{

/** Makes a device current for as long as it lives. */
class CurrentDevice
{
public:
  explicit CurrentDevice(int index)
  {
    if (cudaGetDevice(&m_Before) != cudaSuccess || m_Before == index)
    {
      m_Before = -1;
    }
    m_Error = cudaSetDevice(index);
  }
  ~CurrentDevice()
  {
    if (m_Before >= 0)
    {
      (void)cudaSetDevice(m_Before);
    }
  }
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &
  operator=(const CurrentDevice &) = delete;

  void
  CheckCuda(const std::string & device) const
  {
    chunkwise::CheckCuda(m_Error, "cudaSetDevice", device);
  }

private:
  int         m_Before{ -1 };
  cudaError_t m_Error{ cudaSuccess };
};

cudaStream_t
Stream(StreamHandle stream)
{
  return static_cast<cudaStream_t>(stream);
}

cudaEvent_t
Event(EventHandle event)
{
  return static_cast<cudaEvent_t>(event);
}

/** One voxel of `to` a thread, x first; pixels are numbers of type T. TNumber holds the number of voxels: what is
 * divided takes most of the time. */
template <typename T, typename TNumber>
__global__ void
CopyVoxelsKernel(BufferView to, BufferView from, Coordinates image, std::int64_t count)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    auto         rest = static_cast<TNumber>(i);
    std::int64_t target = 0;
    std::int64_t source = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const auto         extent = static_cast<TNumber>(to.box.Extent(a));
      const TNumber      next = rest / extent;
      const std::int64_t within = rest - next * extent;
      const std::int64_t n = image.axis[a];
      std::int64_t       at = to.box.lower.axis[a] + within;
      if (at < 0 || at >= n)
      {
        at %= n;
        at += at < 0 ? n : 0;
      }
      target += within * to.stride.axis[a];
      source += (at - from.box.lower.axis[a]) * from.stride.axis[a];
      rest = next;
    }
    static_cast<T *>(to.data)[target] = static_cast<const T *>(from.data)[source];
  }
}

/** Rows of voxels that lie anywhere, none beyond the image's edge. Axes that follow each other in both images are one.
 */
struct RowCopy
{
  std::int64_t width{ 1 };
  std::int64_t rows{ 1 };
  std::int64_t components{ 1 };
  /** The axes in order: x, then the rows' axes, last the components. */
  std::int64_t to[MaxDimension]{};
  std::int64_t from[MaxDimension]{};
  std::int64_t extent[MaxDimension]{};

  RowCopy(const BufferView & target, const BufferView & source)
  {
    constexpr int last = MaxDimension - 1;
    int           axis = 0;
    for (int a = 0; a <= last; ++a)
    {
      const std::int64_t n = target.box.Extent(a);
      const bool         goesOn = a > 0 && a < last && axis == 0 && target.stride.axis[a] == to[0] * width &&
                          source.stride.axis[a] == from[0] * width;
      width *= a == 0 || goesOn ? n : 1;
      axis = goesOn || a == 0 ? axis : axis + 1;
      to[axis] = goesOn ? to[axis] : target.stride.axis[a];
      from[axis] = goesOn ? from[axis] : source.stride.axis[a];
      extent[axis] = goesOn ? width : n;
    }
    extent[0] = width;
    components = extent[axis];
    // Components are copied by the thread that copies their pixel: what lies between them is in the cache then.
    std::swap(to[axis], to[last]);
    std::swap(from[axis], from[last]);
    extent[axis] = axis == last ? extent[axis] : 1;
    for (int a = 1; a < last; ++a)
    {
      extent[a] = a < axis ? extent[a] : 1;
      rows *= extent[a];
    }
  }

  /** Finds the first voxel of a row. */
  __device__ __forceinline__ void
  FindRow(std::int64_t row, std::int64_t & target, std::int64_t & source) const
  {
    target = source = 0;
    for (int a = 1; a < MaxDimension - 1; ++a)
    {
      const std::int64_t next = row / extent[a];
      target += (row - next * extent[a]) * to[a];
      source += (row - next * extent[a]) * from[a];
      row = next;
    }
  }
};

constexpr int VoxelsOfThread = 4;

/** Each thread loads some voxels before it stores them, so that enough loads are pending. */
template <typename T>
__global__ void
CopyRowsKernel(T * to, const T * from, RowCopy copy)
{
  constexpr int      last = MaxDimension - 1;
  const std::int64_t tile = VoxelsOfThread * static_cast<std::int64_t>(blockDim.x);
  for (std::int64_t row = blockIdx.y; row < copy.rows; row += gridDim.y)
  {
    std::int64_t target;
    std::int64_t source;
    copy.FindRow(row, target, source);
    for (std::int64_t begin = blockIdx.x * tile; begin < copy.width; begin += gridDim.x * tile)
    {
      for (std::int64_t c = 0; c < copy.components; ++c)
      {
        T voxels[VoxelsOfThread];
#pragma unroll
        for (int i = 0; i < VoxelsOfThread; ++i)
        {
          const std::int64_t x = begin + threadIdx.x + i * blockDim.x;
          voxels[i] = x < copy.width ? from[source + c * copy.from[last] + x * copy.from[0]] : T(0);
        }
#pragma unroll
        for (int i = 0; i < VoxelsOfThread; ++i)
        {
          const std::int64_t x = begin + threadIdx.x + i * blockDim.x;
          if (x < copy.width)
          {
            to[target + c * copy.to[last] + x * copy.to[0]] = voxels[i];
          }
        }
      }
    }
  }
}

/** The numbers that a thread loads, or stores, at once. */
template <typename T>
struct alignas(16) Vector
{
  static constexpr int Numbers = 16 / sizeof(T);
  T                    numbers[Numbers];
};

/** De-interleaves or interleaves pixels: a thread has as many pixels as a vector has numbers. */
template <bool VTakesApart, int VComponents, typename T>
__global__ void
CopyPixelsKernel(T * to, const T * from, RowCopy copy)
{
  using Numbers = Vector<T>;
  constexpr int      last = MaxDimension - 1;
  constexpr int      count = Numbers::Numbers;
  const std::int64_t tiles = (copy.width + count - 1) / count;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t row = blockIdx.y; row < copy.rows; row += gridDim.y)
  {
    std::int64_t target;
    std::int64_t source;
    copy.FindRow(row, target, source);
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < tiles; i += step)
    {
      const std::int64_t x = i * count;
      T * const          out = to + target + x * copy.to[0];
      const T * const    in = from + source + x * copy.from[0];
      if (x + count > copy.width)
      {
        for (std::int64_t k = 0; k < (copy.width - x) * VComponents; ++k)
        {
          const std::int64_t pixel = k / VComponents;
          const std::int64_t c = k % VComponents;
          out[pixel * copy.to[0] + c * copy.to[last]] = in[pixel * copy.from[0] + c * copy.from[last]];
        }
        continue;
      }
      // Vectors of a component each, or that follow each other.
      Numbers loaded[VComponents];
      Numbers stored[VComponents];
#pragma unroll
      for (int v = 0; v < VComponents; ++v)
      {
        loaded[v] = *reinterpret_cast<const Numbers *>(in + (VTakesApart ? v * count : v * copy.from[last]));
      }
#pragma unroll
      for (int k = 0; k < VComponents * count; ++k)
      {
        T & together = (VTakesApart ? loaded : stored)[k / count].numbers[k % count];
        T & apart = (VTakesApart ? stored : loaded)[k % VComponents].numbers[k / VComponents];
        (VTakesApart ? apart : together) = VTakesApart ? together : apart;
      }
#pragma unroll
      for (int v = 0; v < VComponents; ++v)
      {
        *reinterpret_cast<Numbers *>(out + (VTakesApart ? v * copy.to[last] : v * count)) = stored[v];
      }
    }
  }
}

/** Whether rows, and their components where these lie apart, begin where a vector may. */
bool
AreVectors(const void * data, const std::int64_t (&strides)[MaxDimension], const RowCopy & copy, bool isApart,
           std::size_t size)
{
  constexpr int  last = MaxDimension - 1;
  constexpr auto bytes = sizeof(Vector<char>);
  bool           all = reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
  for (int a = 1; a < MaxDimension; ++a)
  {
    const bool steps = a == last ? isApart : copy.extent[a] > 1;
    all = all && (!steps || static_cast<std::uint64_t>(strides[a]) * size % bytes == 0);
  }
  return all;
}

/** False, if the images lie otherwise. */
template <bool VTakesApart, int VComponents, typename T>
bool
LaunchCopyPixels(T * to, const T * from, const RowCopy & copy, cudaStream_t stream)
{
  constexpr int last = MaxDimension - 1;
  const auto    areTogether = [&](const std::int64_t(&strides)[MaxDimension]) {
    return strides[0] == VComponents && strides[last] == 1;
  };
  if (copy.components != VComponents || !areTogether(VTakesApart ? copy.from : copy.to) ||
      (VTakesApart ? copy.to : copy.from)[0] != 1 || !AreVectors(to, copy.to, copy, VTakesApart, sizeof(T)) ||
      !AreVectors(from, copy.from, copy, !VTakesApart, sizeof(T)))
  {
    return false;
  }
  constexpr int      threads = 256;
  const std::int64_t tiles = (copy.width + Vector<T>::Numbers - 1) / Vector<T>::Numbers;
  const dim3         blocks(static_cast<unsigned int>(std::min<std::int64_t>((tiles + threads - 1) / threads, 1 << 16)),
                    static_cast<unsigned int>(std::min<std::int64_t>(copy.rows, 1 << 15)));
  CopyPixelsKernel<VTakesApart, VComponents><<<blocks, threads, 0, stream>>>(to, from, copy);
  return true;
}

/** Whether no voxel of the box is beyond the edge of what is there. */
bool
IsInside(const Box & box, const Box & image, const Box & there)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (box.lower[a] < std::max<std::int64_t>(0, there.lower[a]) ||
        box.upper[a] > std::min(image.Extent(a), there.upper[a]))
    {
      return false;
    }
  }
  return true;
}

template <typename T>
void
LaunchCopyRows(const BufferView & to, const BufferView & from, cudaStream_t stream)
{
  constexpr int      threads = 256;
  const RowCopy      copy(to, from);
  auto * const       target = static_cast<T *>(to.data);
  const auto * const source = static_cast<const T *>(from.data) + from.Offset(to.box.lower);
  // Colors, with opacity or without.
  if (LaunchCopyPixels<true, 3>(target, source, copy, stream) ||
      LaunchCopyPixels<false, 3>(target, source, copy, stream) ||
      LaunchCopyPixels<true, 4>(target, source, copy, stream) ||
      LaunchCopyPixels<false, 4>(target, source, copy, stream))
  {
    return;
  }
  const std::int64_t tiles = (copy.width + threads * VoxelsOfThread - 1) / (threads * VoxelsOfThread);
  const dim3         blocks(static_cast<unsigned int>(std::min<std::int64_t>(tiles, 1 << 16)),
                    static_cast<unsigned int>(std::min<std::int64_t>(copy.rows, 1 << 15)));
  CopyRowsKernel<<<blocks, threads, 0, stream>>>(target, source, copy);
}

template <typename T>
void
LaunchCopyVoxels(const BufferView & to, const BufferView & from, const Box & image, cudaStream_t stream)
{
  if (IsInside(to.box, image, from.box))
  {
    LaunchCopyRows<T>(to, from, stream);
    return;
  }
  constexpr int      threads = 256;
  const std::int64_t count = to.box.NumberOfVoxels();
  const auto blocks = static_cast<unsigned int>(std::min<std::int64_t>((count + threads - 1) / threads, 1 << 16));
  const auto kernel = count <= std::numeric_limits<std::uint32_t>::max() ? CopyVoxelsKernel<T, std::uint32_t>
                                                                         : CopyVoxelsKernel<T, std::int64_t>;
  kernel<<<blocks, threads, 0, stream>>>(to, from, image.Extents(), count);
}

/** Bytes a second that a device reads of any other's memory; 0: not known, or through the host. */
double
FindPeerRate(int index)
{
  // Links between GPUs alone have native atomics. Two H200 read 335 GB/s.
  constexpr double OfNVLink = 3e11;
  int              count = 0;
  bool             areLinked = cudaGetDeviceCount(&count) == cudaSuccess && count > 1;
  for (int other = 0; other < count; ++other)
  {
    int atomics = 0;
    areLinked =
      areLinked &&
      (other == index ||
       (cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, index, other) == cudaSuccess &&
        atomics));
  }
  (void)cudaGetLastError();
  return areLinked ? OfNVLink : 0;
}

} // namespace

CudaDevice::CudaDevice(int index, const KernelRegistry & kernels)
  : m_Index(index)
  , m_Kernels(kernels)
{
  cudaDeviceProp properties{};
  CheckCuda(
    cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties", "CUDA device " + std::to_string(index));
  m_Description.name = std::string(properties.name) + " (device " + std::to_string(index) + ")";
  m_Description.backend = "cuda";
  m_Description.index = index;
  m_Description.totalMemory = properties.totalGlobalMem;
  char address[32] = "";
  if (cudaDeviceGetPCIBusId(address, sizeof(address), index) == cudaSuccess)
  {
    m_Description.busAddress = address;
  }
  (void)cudaGetLastError();
  int clock = 0;
  int width = 0;
  if (cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, index) == cudaSuccess &&
      cudaDeviceGetAttribute(&width, cudaDevAttrGlobalMemoryBusWidth, index) == cudaSuccess && clock > 0 && width > 0)
  {
    // Twice per clock (kHz); copies reach about 85% of it.
    m_Description.memoryRate = 0.85 * 2.0 * clock * 1000.0 * width / 8.0;
  }
  m_Description.peerRate = FindPeerRate(index);
  m_Description.launchSeconds = 30e-6;
  if (const char * limit = std::getenv("CHUNKWISE_CUDA_DEVICE_LIMIT"))
  {
    m_Limit = std::strtoull(limit, nullptr, 10);
  }
}

const DeviceDescription &
CudaDevice::GetDescription() const
{
  return m_Description;
}

std::size_t
CudaDevice::GetFreeMemory()
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  std::size_t free = 0;
  std::size_t total = 0;
  CheckCuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", m_Description.name);
  if (m_Limit)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    free = std::min(free, m_Used < m_Limit ? m_Limit - m_Used : 0);
  }
  return free;
}

const KernelRegistry &
CudaDevice::GetKernels() const
{
  return m_Kernels;
}

void *
CudaDevice::Allocate(std::size_t bytes)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  if (m_Limit && (m_Used > m_Limit || bytes > m_Limit - m_Used))
  {
    throw DeviceError(DeviceError::Kind::OutOfMemory,
                      "cudaMalloc",
                      m_Description.name,
                      bytes,
                      "CHUNKWISE_CUDA_DEVICE_LIMIT is reached");
  }
  void * memory = nullptr;
  CheckCuda(cudaMalloc(&memory, bytes), "cudaMalloc", m_Description.name, bytes);
  m_Allocations[memory] = bytes;
  m_Used += bytes;
  return memory;
}

void
CudaDevice::Free(void * memory) noexcept
{
  const CurrentDevice               current(m_Index);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  const auto                        found = m_Allocations.find(memory);
  if (found != m_Allocations.end())
  {
    m_Used -= found->second;
    m_Allocations.erase(found);
    (void)cudaFree(memory);
    (void)cudaGetLastError();
  }
}

void *
CudaDevice::AllocatePinned(std::size_t bytes)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  void * memory = nullptr;
  CheckCuda(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc", m_Description.name, bytes);
  return memory;
}

void
CudaDevice::FreePinned(void * memory) noexcept
{
  const CurrentDevice current(m_Index);
  (void)cudaFreeHost(memory);
  (void)cudaGetLastError();
}

bool
CudaDevice::IsPinned(const void * memory, std::size_t bytes) noexcept
{
  const CurrentDevice current(m_Index);
  for (const std::size_t offset : { std::size_t{ 0 }, bytes ? bytes - 1 : 0 })
  {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, static_cast<const char *>(memory) + offset) != cudaSuccess ||
        attributes.type != cudaMemoryTypeHost)
    {
      (void)cudaGetLastError();
      return false;
    }
  }
  return true;
}

StreamHandle
CudaDevice::CreateStream()
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  cudaStream_t stream = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", m_Description.name);
  return stream;
}

void
CudaDevice::DestroyStream(StreamHandle stream) noexcept
{
  const CurrentDevice current(m_Index);
  (void)cudaStreamDestroy(Stream(stream));
  (void)cudaGetLastError();
}

EventHandle
CudaDevice::CreateEvent()
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  cudaEvent_t event = nullptr;
  CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags", m_Description.name);
  return event;
}

void
CudaDevice::DestroyEvent(EventHandle event) noexcept
{
  const CurrentDevice current(m_Index);
  (void)cudaEventDestroy(Event(event));
  (void)cudaGetLastError();
}

void
CudaDevice::Record(EventHandle event, StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  CheckCuda(cudaEventRecord(Event(event), Stream(stream)), "cudaEventRecord", m_Description.name);
}

void
CudaDevice::Wait(StreamHandle stream, EventHandle event)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  CheckCuda(cudaStreamWaitEvent(Stream(stream), Event(event), 0), "cudaStreamWaitEvent", m_Description.name);
}

bool
CudaDevice::Query(EventHandle event)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  const cudaError_t error = cudaEventQuery(Event(event));
  if (error == cudaErrorNotReady)
  {
    (void)cudaGetLastError();
    return false;
  }
  CheckCuda(error, "cudaEventQuery", m_Description.name);
  return true;
}

void
CudaDevice::Synchronize(StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  CheckCuda(cudaStreamSynchronize(Stream(stream)), "cudaStreamSynchronize", m_Description.name);
}

void
CudaDevice::CopyToDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, Stream(stream)),
            "cudaMemcpyAsync to the device",
            m_Description.name,
            bytes);
}

void
CudaDevice::CopyToHost(void * to, const void * from, std::size_t bytes, StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Stream(stream)),
            "cudaMemcpyAsync to the host",
            m_Description.name,
            bytes);
}

void
CudaDevice::OpenPeer(const void * memory)
{
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess || attributes.device == m_Index)
  {
    (void)cudaGetLastError();
    return;
  }
  const std::lock_guard<std::mutex> lock(m_Mutex);
  if (m_Peers.insert(attributes.device).second)
  {
    // Copies go through the host's memory if there is no direct way. So an error here is none.
    (void)cudaDeviceEnablePeerAccess(attributes.device, 0);
    (void)cudaGetLastError();
  }
}

void
CudaDevice::CopyOnDevice(void * to, const void * from, std::size_t bytes, StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  this->OpenPeer(from);
  CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, Stream(stream)),
            "cudaMemcpyAsync on the device",
            m_Description.name,
            bytes);
}

void
CudaDevice::SetToZero(void * memory, std::size_t bytes, StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  CheckCuda(cudaMemsetAsync(memory, 0, bytes, Stream(stream)), "cudaMemsetAsync", m_Description.name, bytes);
}

void
CudaDevice::CopyVoxels(const BufferView & to, const BufferView & from, const Box & image, StreamHandle stream)
{
  if (to.box.IsEmpty())
  {
    return;
  }
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  switch (PixelSize(to.kind))
  {
    case 1:
      LaunchCopyVoxels<std::uint8_t>(to, from, image, Stream(stream));
      break;
    case 2:
      LaunchCopyVoxels<std::uint16_t>(to, from, image, Stream(stream));
      break;
    case 4:
      LaunchCopyVoxels<std::uint32_t>(to, from, image, Stream(stream));
      break;
    default:
      LaunchCopyVoxels<std::uint64_t>(to, from, image, Stream(stream));
      break;
  }
  CheckCuda(cudaGetLastError(), "launch of CopyVoxels", m_Description.name, to.NumberOfBytes());
}

bool
CudaDevice::Owns(const void * memory, std::size_t bytes) noexcept
{
  const CurrentDevice current(m_Index);
  for (const std::size_t offset : { std::size_t{ 0 }, bytes ? bytes - 1 : 0 })
  {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, static_cast<const char *>(memory) + offset) != cudaSuccess ||
        !(attributes.type == cudaMemoryTypeManaged ||
          (attributes.type == cudaMemoryTypeDevice && attributes.device == m_Index)))
    {
      (void)cudaGetLastError();
      return false;
    }
  }
  return true;
}

void
CudaDevice::Launch(const Kernel & kernel, KernelCall call, StreamHandle stream)
{
  const CurrentDevice current(m_Index);
  current.CheckCuda(m_Description.name);
  call.stream = stream;
  call.kernels = &m_Kernels;
  kernel.run(call);
}

} // namespace chunkwise
