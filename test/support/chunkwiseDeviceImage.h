/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeviceImage_h
#define chunkwiseDeviceImage_h

#include "chunkwiseDevice.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace chunkwise
{

/** How the voxels of an image lie in memory. */
struct ImageLayout
{
  int          order[MaxDimension]{ 0, 1, 2, 3, 4 }; ///< axes, the fastest first
  std::int64_t step{ 1 };                            ///< of the fastest axis
  std::int64_t gap{ 0 };                             ///< voxels between lines
  bool         flips[MaxDimension]{};
  std::int64_t offset{ 0 }; ///< voxels before the image
  bool
  IsDense() const
  {
    return std::is_sorted(order, order + MaxDimension) && step == 1 && gap == 0 &&
           std::none_of(flips, flips + MaxDimension, [](bool flip) { return flip; });
  }

  static ImageLayout
  Random(std::mt19937 & random)
  {
    ImageLayout layout;
    std::shuffle(layout.order, layout.order + MaxDimension, random);
    layout.step = 1 + static_cast<std::int64_t>(random() % 2);
    layout.gap = static_cast<std::int64_t>(random() % 4);
    layout.offset = static_cast<std::int64_t>(random() % 5);
    std::generate(layout.flips, layout.flips + MaxDimension, [&] { return random() % 3 == 0; });
    return layout;
  }
};

/** An image in the memory of a device, between guards, with a copy of all its memory on the host. */
class DeviceImage
{
public:
  DeviceImage(Device & device, PixelType kind, const Box & box, const ImageLayout & layout = ImageLayout())
    : m_Device(device)
  {
    m_View.kind = kind;
    m_View.box = box;
    std::int64_t step = layout.step;
    std::int64_t begin = 0;
    for (const int a : layout.order)
    {
      m_View.stride[a] = layout.flips[a] ? -step : step;
      begin += layout.flips[a] ? (box.Extent(a) - 1) * step : 0;
      step = step * box.Extent(a) + (step > 1 ? layout.gap : 0);
    }
    m_First = (layout.offset + begin) * static_cast<std::int64_t>(PixelSize(kind));
    m_Bytes.assign(static_cast<std::size_t>(layout.offset + step + 8) * PixelSize(kind), 0xA5);
    m_View.data = static_cast<char *>(m_Memory = device.Allocate(m_Bytes.size())) + m_First;
  }
  ~DeviceImage() { m_Device.Free(m_Memory); }
  DeviceImage(const DeviceImage &) = delete;
  DeviceImage &
  operator=(const DeviceImage &) = delete;

  /** On the device. */
  const BufferView &
  GetView() const
  {
    return m_View;
  }
  /** A view of the host's copy. */
  BufferView
  GetHostView()
  {
    BufferView view = m_View;
    view.data = m_Bytes.data() + m_First;
    return view;
  }
  /** Enqueues the transfer of all bytes. */
  void
  Upload(StreamHandle stream)
  {
    m_Device.CopyToDevice(m_Memory, m_Bytes.data(), m_Bytes.size(), stream);
  }
  void
  Download(StreamHandle stream)
  {
    m_Device.CopyToHost(m_Bytes.data(), m_Memory, m_Bytes.size(), stream);
    m_Device.Synchronize(stream);
  }
  const std::vector<unsigned char> &
  GetBytes() const
  {
    return m_Bytes;
  }

private:
  Device &                   m_Device;
  BufferView                 m_View;
  std::vector<unsigned char> m_Bytes;
  void *                     m_Memory{ nullptr };
  std::int64_t               m_First{ 0 };
};

} // namespace chunkwise

#endif
