/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileComponent.h"

#include "chunkwiseHostMemory.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace chunkwise::files
{

namespace
{

/** Reads all components of some planes at a time, and keeps one. */
class ComponentSource : public FileSource
{
public:
  ComponentSource(std::unique_ptr<FileSource> source, std::int64_t component)
    : m_Source(std::move(source))
    , m_Component(component)
  {
    m_Header = m_Source->GetHeader();
    m_Header.components = 1;
    m_Files = m_Source->GetFiles();
    if (component == 0)
    {
      // Once for the file, not for each component.
      m_Warnings = m_Source->GetWarnings();
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Axis = m_Header.extent[a] > 1 ? a : m_Axis;
    }
    Box plane = Box::FromExtent(m_Header.extent);
    plane.upper[m_Axis] = 1;
    // Whole units, so that none is decoded twice.
    const std::int64_t unit = m_Source->GetAccess().unit[std::min(m_Axis + 1, MaxDimension - 1)];
    const std::int64_t planes = BytesAtOnce / std::max<std::int64_t>(1, this->BytesOf(plane));
    m_Step =
      std::min(std::max<std::int64_t>(1, planes / unit) * unit, std::max<std::int64_t>(1, m_Header.extent[m_Axis]));
    m_BytesOfStep = static_cast<std::uint64_t>(m_Step * this->BytesOf(plane));
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access = m_Source->GetAccess();
    for (int a = 0; a + 1 < MaxDimension; ++a)
    {
      access.unit[a] = access.unit[a + 1];
    }
    access.unit[MaxDimension - 1] = 1;
    access.heldBytes += m_BytesOfStep * (access.anyOrder && !access.wholeBoxes ? GetNumberOfProcessors() : 1);
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    Box part = box;
    for (std::int64_t i = box.lower[m_Axis]; i < box.upper[m_Axis]; i = part.upper[m_Axis])
    {
      part.lower[m_Axis] = i;
      part.upper[m_Axis] = std::min(box.upper[m_Axis], i / m_Step * m_Step + m_Step);
      this->ReadPlanes(part, view);
    }
    m_BytesRead = m_Source->GetBytesRead();
  }
  void
  KeepBehind(std::int64_t planes) override
  {
    m_Source->KeepBehind(planes);
  }
  void
  HoldAtMost(std::uint64_t bytes) override
  {
    m_Source->HoldAtMost(bytes);
  }

private:
  static constexpr std::int64_t BytesAtOnce = 1 << 20;

  /** Bytes of all components. */
  std::int64_t
  BytesOf(const Box & box) const
  {
    return box.NumberOfVoxels() * m_Source->GetHeader().components *
           static_cast<std::int64_t>(PixelSize(m_Header.kind));
  }

  void
  ReadPlanes(const Box & box, const BufferView & view)
  {
    const auto        size = static_cast<std::int64_t>(PixelSize(m_Header.kind));
    std::vector<char> voxels(static_cast<std::size_t>(this->BytesOf(box)));
    Box               all{};
    all.upper[0] = m_Source->GetHeader().components;
    for (int a = 0; a + 1 < MaxDimension; ++a)
    {
      all.lower[a + 1] = box.lower[a];
      all.upper[a + 1] = box.upper[a];
    }
    m_Source->Read(all, DenseView(voxels.data(), m_Header.kind, all));
    const char *       from = voxels.data() + m_Component * size;
    const std::int64_t rows = box.NumberOfVoxels() / std::max<std::int64_t>(1, box.Extent(0));
    for (std::int64_t row = 0; row < rows; ++row)
    {
      Coordinates  at = box.lower;
      std::int64_t rest = row;
      for (int a = 1; a < MaxDimension; ++a)
      {
        at[a] += rest % box.Extent(a);
        rest /= box.Extent(a);
      }
      char * to = static_cast<char *>(view.data) + view.Offset(at) * size;
      for (std::int64_t x = 0; x < box.Extent(0); ++x, to += view.stride[0] * size, from += all.upper[0] * size)
      {
        std::memcpy(to, from, static_cast<std::size_t>(size));
      }
    }
  }

  std::unique_ptr<FileSource> m_Source;
  std::int64_t                m_Component;
  int                         m_Axis{ 0 }; ///< of the planes
  std::int64_t                m_Step{ 1 }; ///< planes that are read at once
  std::uint64_t               m_BytesOfStep{ 0 };
};

} // namespace

std::unique_ptr<FileSource>
MakeComponentSource(std::unique_ptr<FileSource> source, std::int64_t component)
{
  return std::make_unique<ComponentSource>(std::move(source), component);
}

} // namespace chunkwise::files
