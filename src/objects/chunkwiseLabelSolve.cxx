/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseLabelSummary.h"

#include <algorithm>
#include <cstring>
#include <numeric>

// Joins the components of chunks across their faces, and numbers them in the raster order of their first voxels.
namespace chunkwise
{

LabelSets::LabelSets(std::size_t count)
  : m_Parents(count)
{
  std::iota(m_Parents.begin(), m_Parents.end(), std::size_t{ 0 });
}

std::size_t
LabelSets::Find(std::size_t i)
{
  while (m_Parents[i] != i)
  {
    m_Parents[i] = m_Parents[m_Parents[i]];
    i = m_Parents[i];
  }
  return i;
}

void
LabelSets::Join(std::size_t a, std::size_t b)
{
  a = this->Find(a);
  b = this->Find(b);
  m_Parents[std::max(a, b)] = std::min(a, b);
}

namespace
{

/** The components of a chunk that touch its faces. */
struct ChunkFaces
{
  const Box *           box;
  const unsigned char * summary;
  /** Labels in the chunk, ascending, and where they are among those of all chunks. */
  std::vector<std::uint64_t> labels;
  std::size_t                first{ 0 };
  /** For each voxel of each face the component, counted from 1; 0: the background. */
  std::vector<std::vector<std::uint32_t>> components;
  /** How many components begin before each row, in the chunk. */
  std::vector<std::uint64_t> before;

  /** The row in which the component of a label begins. */
  std::size_t
  RowOf(std::uint64_t label) const
  {
    return static_cast<std::size_t>(std::lower_bound(before.begin(), before.end(), label) - before.begin()) - 1;
  }
};

class LabelSolver
{
public:
  LabelSolver(const LabelOperation & operation, const std::vector<Box> & boxes, const std::vector<SideData> & summaries)
    : m_Operation(operation)
    , m_Image(Union(boxes))
    , m_Chunks(boxes.size())
  {
    for (std::size_t i = 0; i < boxes.size(); ++i)
    {
      m_Layouts.emplace_back(operation, boxes[i]);
      m_Chunks[i].box = &boxes[i];
      m_Chunks[i].summary = summaries[i].data();
      this->ReadRows(i);
      this->ReadFaces(i);
    }
    this->FindOffsets();
  }

  std::vector<SideData>
  Solve()
  {
    const std::vector<std::size_t> order = this->OrderByFirstVoxel();
    LabelSets                      sets(order.size());
    // Sets are of ranks in that order, so that the number of each is its first voxel's.
    std::vector<std::size_t> ranks(order.size());
    for (std::size_t rank = 0; rank < order.size(); ++rank)
    {
      ranks[order[rank]] = rank;
    }
    for (std::size_t a = 0; a < m_Chunks.size(); ++a)
    {
      for (std::size_t b = a; b < m_Chunks.size(); ++b)
      {
        this->JoinChunks(a, b, [&](std::size_t i, std::size_t j) { sets.Join(ranks[i], ranks[j]); });
      }
    }
    return this->Number(ranks, sets);
  }

private:
  static Box
  Union(const std::vector<Box> & boxes)
  {
    Box all = boxes.front();
    for (const Box & box : boxes)
    {
      for (int a = 0; a < MaxDimension; ++a)
      {
        all.lower[a] = std::min(all.lower[a], box.lower[a]);
        all.upper[a] = std::max(all.upper[a], box.upper[a]);
      }
    }
    return all;
  }

  bool
  IsPeriodic() const
  {
    return std::any_of(
      m_Operation.axes.begin(), m_Operation.axes.end(), [this](int axis) { return m_Operation.periodic[axis]; });
  }

  std::uint64_t
  LabelAt(std::size_t chunk, const LabelFace & face, std::int64_t i) const
  {
    const unsigned char * const at = m_Chunks[chunk].summary + face.labels;
    if (m_Layouts[chunk].labelBytes == 8)
    {
      std::uint64_t label;
      std::memcpy(&label, at + 8 * i, 8);
      return label;
    }
    std::uint32_t label;
    std::memcpy(&label, at + 4 * i, 4);
    return label;
  }

  void
  ReadRows(std::size_t c)
  {
    const auto rows = static_cast<std::size_t>(m_Layouts[c].rows);
    m_Chunks[c].before.assign(rows + 1, 0);
    for (std::size_t row = 0; row < rows; ++row)
    {
      std::uint32_t count;
      std::memcpy(&count, m_Chunks[c].summary + row * sizeof(count), sizeof(count));
      m_Chunks[c].before[row + 1] = m_Chunks[c].before[row] + count;
    }
  }

  void
  ReadFaces(std::size_t c)
  {
    ChunkFaces &               chunk = m_Chunks[c];
    const LabelSummaryLayout & layout = m_Layouts[c];
    std::uint64_t              last = 0;
    for (int f = 0; f < layout.numberOfFaces; ++f)
    {
      for (std::int64_t i = 0; i < layout.faces[f].voxels; ++i)
      {
        const std::uint64_t label = this->LabelAt(c, layout.faces[f], i);
        if (label != last && label != 0)
        {
          chunk.labels.push_back(label);
        }
        last = label;
      }
      std::sort(chunk.labels.begin(), chunk.labels.end());
      chunk.labels.erase(std::unique(chunk.labels.begin(), chunk.labels.end()), chunk.labels.end());
    }
    chunk.first = m_NumberOfComponents;
    m_NumberOfComponents += chunk.labels.size();
    for (int f = 0; f < layout.numberOfFaces; ++f)
    {
      std::vector<std::uint32_t> components(static_cast<std::size_t>(layout.faces[f].voxels));
      last = 0;
      std::uint32_t component = 0;
      for (std::int64_t i = 0; i < layout.faces[f].voxels; ++i)
      {
        const std::uint64_t label = this->LabelAt(c, layout.faces[f], i);
        if (label != last)
        {
          const auto found = std::lower_bound(chunk.labels.begin(), chunk.labels.end(), label);
          component = label == 0 ? 0 : static_cast<std::uint32_t>(found - chunk.labels.begin()) + 1;
          last = label;
        }
        components[static_cast<std::size_t>(i)] = component;
      }
      chunk.components.push_back(std::move(components));
    }
  }

  /** The offsets of all neighbors. */
  void
  FindOffsets()
  {
    for (Coordinates offset : m_Operation.GetOffsets())
    {
      m_Offsets.push_back(offset);
      for (int a = 0; a < MaxDimension; ++a)
      {
        offset[a] = -offset[a];
      }
      m_Offsets.push_back(offset);
    }
  }

  /** The row of the image in which a row of a chunk lies. */
  std::uint64_t
  RowInImage(std::size_t c, std::size_t row) const
  {
    const Box &   box = *m_Chunks[c].box;
    std::uint64_t inImage = 0;
    std::uint64_t stride = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const auto extent = static_cast<std::size_t>(box.Extent(a));
      inImage += (row % extent + static_cast<std::size_t>(box.lower[a] - m_Image.lower[a])) * stride;
      stride *= static_cast<std::uint64_t>(m_Image.Extent(a));
      row /= extent;
    }
    return inImage;
  }

  /** All components, by where they begin in the image: chunks that have a row in common follow each other along x. */
  std::vector<std::size_t>
  OrderByFirstVoxel() const
  {
    struct Begin
    {
      std::uint64_t row;
      std::int64_t  x;
      std::size_t   component;
    };
    std::vector<Begin> begins;
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      for (const std::uint64_t label : m_Chunks[c].labels)
      {
        begins.push_back({ this->RowInImage(c, m_Chunks[c].RowOf(label)), m_Chunks[c].box->lower[0], begins.size() });
      }
    }
    std::sort(begins.begin(), begins.end(), [](const Begin & a, const Begin & b) {
      return a.row != b.row ? a.row < b.row : a.x != b.x ? a.x < b.x : a.component < b.component;
    });
    std::vector<std::size_t> order;
    for (const Begin & begin : begins)
    {
      order.push_back(begin.component);
    }
    return order;
  }

  /** The number of a face's voxel, and the face; -1 where the voxel lies on none. */
  std::int64_t
  OnFace(std::size_t c, const Coordinates & index, int & face) const
  {
    const Box &                box = *m_Chunks[c].box;
    const LabelSummaryLayout & layout = m_Layouts[c];
    for (face = 0; face < layout.numberOfFaces; ++face)
    {
      const LabelFace & candidate = layout.faces[face];
      const int         axis = candidate.axis;
      if (index[axis] == (candidate.isUpper ? box.upper[axis] - 1 : box.lower[axis]))
      {
        std::int64_t number = 0;
        for (int a = MaxDimension - 1; a >= 0; --a)
        {
          number = a == axis ? number : number * box.Extent(a) + index[a] - box.lower[a];
        }
        return number;
      }
    }
    return -1;
  }

  /** The value of a voxel on a face, for rules that ask for values. */
  const void *
  ValueAt(std::size_t c, int face, std::int64_t i) const
  {
    return m_Chunks[c].summary + m_Layouts[c].faces[face].values +
           static_cast<std::size_t>(i) * PixelSize(m_Operation.inputKind);
  }

  /** Calls join for components of both chunks that have neighbors in each other, also across a periodic edge. */
  template <typename TJoin>
  void
  JoinChunks(std::size_t a, std::size_t b, TJoin && join) const
  {
    // The shift that brings chunk b beside chunk a across a periodic edge.
    Coordinates shift{};
    for (int code = 0; code < 243; ++code)
    {
      int  rest = code;
      bool isShift = true;
      bool isNone = true;
      for (int axis = 0; axis < MaxDimension; ++axis, rest /= 3)
      {
        const int times = rest % 3 - 1;
        isNone = isNone && times == 0;
        const bool wraps = m_Operation.periodic[axis] && m_Image.Extent(axis) == m_Operation.image[axis] &&
                           std::find(m_Operation.axes.begin(), m_Operation.axes.end(), axis) != m_Operation.axes.end();
        isShift = isShift && (times == 0 || wraps);
        shift[axis] = times * m_Image.Extent(axis);
      }
      if (isShift && !(isNone && a == b))
      {
        this->JoinShifted(a, b, shift, join);
      }
    }
  }

  template <typename TJoin>
  void
  JoinShifted(std::size_t a, std::size_t b, const Coordinates & shift, TJoin && join) const
  {
    Box other = *m_Chunks[b].box;
    Box near = other;
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      other.lower[axis] += shift[axis];
      other.upper[axis] += shift[axis];
      near.lower[axis] = other.lower[axis] - 1;
      near.upper[axis] = other.upper[axis] + 1;
    }
    const Box border = Intersect(*m_Chunks[a].box, near);
    if (border.IsEmpty())
    {
      return;
    }
    std::size_t lastI = 0;
    std::size_t lastJ = 0;
    Coordinates at = border.lower;
    for (std::int64_t n = border.NumberOfVoxels(); n > 0; --n)
    {
      int                faceA = 0;
      const std::int64_t i = this->OnFace(a, at, faceA);
      const auto         component =
        i < 0 ? 0 : m_Chunks[a].components[static_cast<std::size_t>(faceA)][static_cast<std::size_t>(i)];
      if (component != 0)
      {
        for (const Coordinates & offset : m_Offsets)
        {
          Coordinates beside{};
          bool        isInside = true;
          for (int axis = 0; axis < MaxDimension; ++axis)
          {
            beside[axis] = at[axis] + offset[axis];
            isInside = isInside && beside[axis] >= other.lower[axis] && beside[axis] < other.upper[axis];
            beside[axis] -= shift[axis];
          }
          if (!isInside)
          {
            continue;
          }
          int                faceB = 0;
          const std::int64_t j = this->OnFace(b, beside, faceB);
          const auto         neighbor =
            j < 0 ? 0 : m_Chunks[b].components[static_cast<std::size_t>(faceB)][static_cast<std::size_t>(j)];
          if (neighbor == 0 || !m_Operation.AreAlike(this->ValueAt(a, faceA, i), this->ValueAt(b, faceB, j)))
          {
            continue;
          }
          const std::size_t first = m_Chunks[a].first + component - 1;
          const std::size_t second = m_Chunks[b].first + neighbor - 1;
          if (first != lastI || second != lastJ)
          {
            join(first, second);
            lastI = first;
            lastJ = second;
          }
        }
      }
      for (int axis = 0; axis < MaxDimension && ++at[axis] == border.upper[axis]; ++axis)
      {
        at[axis] = border.lower[axis];
      }
    }
  }

  std::vector<SideData>
  Number(const std::vector<std::size_t> & ranks, LabelSets & sets)
  {
    // Components that begin elsewhere get the label of their set, or of the block's numbering.
    m_IsGiven.resize(m_Chunks.size());
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      for (std::size_t i = 0; i < m_Chunks[c].labels.size(); ++i)
      {
        const std::size_t rank = ranks[m_Chunks[c].first + i];
        m_IsGiven[c].push_back(sets.Find(rank) != rank);
      }
    }
    m_Labels.assign(ranks.size(), 0);
    std::vector<SideData> solutions = this->NumberThoseThatBegin(0);
    this->LabelThoseThatBegin(ranks, solutions);
    if (const LabelNumbering * const numbering = m_Operation.numbering.get())
    {
      std::vector<std::uint64_t> ofParts(ranks.size(), 0);
      for (std::size_t c = 0; c < m_Chunks.size(); ++c)
      {
        for (std::size_t i = 0; i < m_Chunks[c].labels.size(); ++i)
        {
          const std::uint64_t inBlock = m_Labels[ranks[m_Chunks[c].first + i]];
          const auto          found =
            std::lower_bound(numbering->parts.begin(),
                             numbering->parts.end(),
                             inBlock,
                             [](const LabelOfPart & part, std::uint64_t label) { return part.inPart < label; });
          if (!m_IsGiven[c][i] && found != numbering->parts.end() && found->inPart == inBlock)
          {
            m_IsGiven[c][i] = true;
            ofParts[ranks[m_Chunks[c].first + i]] = found->label;
          }
        }
      }
      solutions = this->NumberThoseThatBegin(numbering->before);
      this->LabelThoseThatBegin(ranks, solutions);
      for (std::size_t rank = 0; rank < ofParts.size(); ++rank)
      {
        m_Labels[rank] = ofParts[rank] != 0 ? ofParts[rank] : m_Labels[rank];
      }
    }
    this->AddParts(ranks, sets, solutions);
    return solutions;
  }

  /** The offsets of the rows of all chunks, where so many components begin before the region. */
  std::vector<SideData>
  NumberThoseThatBegin(std::uint64_t beforeRegion)
  {
    // The labels before each row of the image, then before each row of each chunk.
    std::vector<std::uint64_t> before(static_cast<std::size_t>(CountRows(m_Image)) + 1);
    before[0] = beforeRegion;
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      for (std::size_t row = 0; row + 1 < m_Chunks[c].before.size(); ++row)
      {
        before[this->RowInImage(c, row) + 1] += m_Chunks[c].before[row + 1] - m_Chunks[c].before[row];
      }
      for (std::size_t i = 0; i < m_Chunks[c].labels.size(); ++i)
      {
        before[this->RowInImage(c, m_Chunks[c].RowOf(m_Chunks[c].labels[i])) + 1] -= m_IsGiven[c][i] ? 1 : 0;
      }
    }
    std::partial_sum(before.begin(), before.end(), before.begin());
    CheckNumberOfLabels(before.back(), m_Operation.outputKind);
    std::vector<SideData> solutions(m_Chunks.size());
    // Chunks that have a row in common follow each other along x.
    std::vector<std::size_t> byX(m_Chunks.size());
    std::iota(byX.begin(), byX.end(), std::size_t{ 0 });
    std::sort(byX.begin(), byX.end(), [this](std::size_t a, std::size_t b) {
      return m_Chunks[a].box->lower[0] < m_Chunks[b].box->lower[0];
    });
    for (const std::size_t c : byX)
    {
      solutions[c] = this->FindOffsetsOfRows(c, before);
    }
    return solutions;
  }

  /** The offsets of a chunk's rows. Advances `before` to the next chunk of the same rows. */
  SideData
  FindOffsetsOfRows(std::size_t c, std::vector<std::uint64_t> & before) const
  {
    const ChunkFaces & chunk = m_Chunks[c];
    const std::size_t  rows = chunk.before.size() - 1;
    SideData           solution(rows * sizeof(std::uint64_t));
    std::uint64_t      parts = 0;
    std::size_t        next = 0;
    for (std::size_t row = 0; row < rows; ++row)
    {
      std::uint64_t &     ofImage = before[this->RowInImage(c, row)];
      const std::uint64_t offset = ofImage - chunk.before[row] + parts;
      std::memcpy(solution.data() + row * sizeof(offset), &offset, sizeof(offset));
      std::uint64_t partsOfRow = 0;
      for (; next < chunk.labels.size() && chunk.labels[next] <= chunk.before[row + 1]; ++next)
      {
        partsOfRow += m_IsGiven[c][next] ? 1 : 0;
      }
      ofImage += chunk.before[row + 1] - chunk.before[row] - partsOfRow;
      parts += partsOfRow;
    }
    return solution;
  }

  /** The labels of components that begin in their chunks, by their ranks. */
  void
  LabelThoseThatBegin(const std::vector<std::size_t> & ranks, const std::vector<SideData> & solutions)
  {
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      std::uint64_t parts = 0;
      for (std::size_t i = 0; i < m_Chunks[c].labels.size(); ++i)
      {
        const std::uint64_t inChunk = m_Chunks[c].labels[i];
        std::uint64_t       offset;
        std::memcpy(&offset, solutions[c].data() + m_Chunks[c].RowOf(inChunk) * sizeof(offset), sizeof(offset));
        m_Labels[ranks[m_Chunks[c].first + i]] = m_IsGiven[c][i] ? 0 : offset + inChunk - parts;
        parts += m_IsGiven[c][i] ? 1 : 0;
      }
    }
  }

  /** Adds to each chunk's solution the components that begin elsewhere. */
  void
  AddParts(const std::vector<std::size_t> & ranks, LabelSets & sets, std::vector<SideData> & solutions) const
  {
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      for (std::size_t i = 0; i < m_Chunks[c].labels.size(); ++i)
      {
        if (m_IsGiven[c][i])
        {
          const LabelOfPart  part{ m_Chunks[c].labels[i], m_Labels[sets.Find(ranks[m_Chunks[c].first + i])] };
          const auto * const bytes = reinterpret_cast<const unsigned char *>(&part);
          solutions[c].insert(solutions[c].end(), bytes, bytes + sizeof(part));
        }
      }
    }
  }

  const LabelOperation &          m_Operation;
  const Box                       m_Image;
  std::vector<LabelSummaryLayout> m_Layouts;
  std::vector<ChunkFaces>         m_Chunks;
  std::vector<Coordinates>        m_Offsets;
  std::size_t                     m_NumberOfComponents{ 0 };
  /** For each component of each chunk, whether it begins elsewhere. */
  std::vector<std::vector<bool>> m_IsGiven;
  /** By ranks. */
  std::vector<std::uint64_t> m_Labels;
};

} // namespace

std::vector<SideData>
LabelOperation::Solve(const std::vector<Box> & chunks, const std::vector<SideData> & summaries) const
{
  return LabelSolver(*this, chunks, summaries).Solve();
}

} // namespace chunkwise
