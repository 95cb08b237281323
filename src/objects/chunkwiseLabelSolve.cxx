/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseLabelSummary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
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
  LabelSolver(const LabelOperation & operation, const std::vector<Box> & boxes,
              const std::vector<ChunkState> & summaries)
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

  std::vector<ChunkState>
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
    this->JoinChunks([&](std::size_t i, std::size_t j) { sets.Join(ranks[i], ranks[j]); });
    return this->Number(ranks, sets);
  }

  /** The last label. */
  std::uint64_t
  GetCount() const
  {
    return m_Count;
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
    const std::uint64_t        count = chunk.before.back();
    std::int64_t               voxels = 0;
    for (int f = 0; f < layout.numberOfFaces; ++f)
    {
      voxels += layout.faces[f].voxels;
    }
    if (count <= 4 * static_cast<std::uint64_t>(voxels))
    {
      // A table of all labels: which ones are on a face, and then where they are in the list.
      std::vector<std::uint32_t> places(static_cast<std::size_t>(count) + 1, 0);
      this->ForEachLabelOfFaces(c, [&](int, std::int64_t, std::uint64_t label) {
        CheckLabel(label, count);
        places[label] = 1;
      });
      places[0] = 0;
      for (std::uint64_t label = 1; label <= count; ++label)
      {
        if (places[label] != 0)
        {
          chunk.labels.push_back(label);
          places[label] = static_cast<std::uint32_t>(chunk.labels.size());
        }
      }
      this->PlaceFaces(c, [&](std::uint64_t label) { return places[label]; });
    }
    else
    {
      this->ForEachLabelOfFaces(c, [&](int, std::int64_t, std::uint64_t label) {
        if (label != 0 && (chunk.labels.empty() || chunk.labels.back() != label))
        {
          chunk.labels.push_back(label);
        }
      });
      std::sort(chunk.labels.begin(), chunk.labels.end());
      chunk.labels.erase(std::unique(chunk.labels.begin(), chunk.labels.end()), chunk.labels.end());
      CheckLabel(chunk.labels.empty() ? 0 : chunk.labels.back(), count);
      this->PlaceFaces(c, [&](std::uint64_t label) {
        const auto found = std::lower_bound(chunk.labels.begin(), chunk.labels.end(), label);
        return label == 0 ? 0 : static_cast<std::uint32_t>(found - chunk.labels.begin()) + 1;
      });
    }
    chunk.first = m_NumberOfComponents;
    m_NumberOfComponents += chunk.labels.size();
  }

  /** Summaries of blocks may come from anywhere. */
  static void
  CheckLabel(std::uint64_t label, std::uint64_t count)
  {
    if (label > count)
    {
      throw ParameterError("a summary has label " + std::to_string(label) + " of " + std::to_string(count));
    }
  }

  /** Calls f(face, voxel, label) for all voxels of a chunk's faces. */
  template <typename TFunctor>
  void
  ForEachLabelOfFaces(std::size_t c, TFunctor && f) const
  {
    const LabelSummaryLayout & layout = m_Layouts[c];
    const auto                 visit = [&](auto label) {
      for (int face = 0; face < layout.numberOfFaces; ++face)
      {
        const unsigned char * at = m_Chunks[c].summary + layout.faces[face].labels;
        for (std::int64_t i = 0; i < layout.faces[face].voxels; ++i, at += sizeof(label))
        {
          std::memcpy(&label, at, sizeof(label));
          f(face, i, label);
        }
      }
    };
    if (layout.labelBytes == 8)
    {
      visit(std::uint64_t{});
    }
    else
    {
      visit(std::uint32_t{});
    }
  }

  /** Notes the component of each voxel on the faces: placeOf(label). */
  template <typename TPlaceOf>
  void
  PlaceFaces(std::size_t c, TPlaceOf && placeOf)
  {
    ChunkFaces & chunk = m_Chunks[c];
    for (int f = 0; f < m_Layouts[c].numberOfFaces; ++f)
    {
      chunk.components.emplace_back(static_cast<std::size_t>(m_Layouts[c].faces[f].voxels));
    }
    std::uint64_t last = 0;
    std::uint32_t component = 0;
    this->ForEachLabelOfFaces(c, [&](int face, std::int64_t i, std::uint64_t label) {
      component = label == last ? component : placeOf(label);
      last = label;
      chunk.components[static_cast<std::size_t>(face)][static_cast<std::size_t>(i)] = component;
    });
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

  /** A face of a chunk as a plane of voxels: number `first` is where the chunk begins. */
  struct Plane
  {
    const LabelFace *     face;
    const std::uint32_t * components;
    Coordinates           stride;

    std::int64_t
    NumberOf(const Coordinates & index, const Box & box) const
    {
      std::int64_t number = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        number += (index[a] - box.lower[a]) * stride[a];
      }
      return number;
    }
  };

  Plane
  PlaneOf(std::size_t c, int axis, bool isUpper) const
  {
    Plane                      plane{};
    const LabelSummaryLayout & layout = m_Layouts[c];
    for (int f = 0; f < layout.numberOfFaces; ++f)
    {
      if (layout.faces[f].axis == axis && layout.faces[f].isUpper == isUpper)
      {
        plane.face = &layout.faces[f];
        plane.components = m_Chunks[c].components[static_cast<std::size_t>(f)].data();
      }
    }
    std::int64_t stride = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      plane.stride[a] = a == axis ? 0 : stride;
      stride *= a == axis ? 1 : m_Chunks[c].box->Extent(a);
    }
    return plane;
  }

  /** The value of a voxel on a face, for rules that ask for values. */
  const void *
  ValueAt(std::size_t c, const LabelFace & face, std::int64_t i) const
  {
    return m_Chunks[c].summary + face.values + static_cast<std::size_t>(i) * PixelSize(m_Operation.inputKind);
  }

  /** Calls join for components of chunks that have neighbors in each other, also across a periodic edge. */
  template <typename TJoin>
  void
  JoinChunks(TJoin && join) const
  {
    // Chunks by the cells in which they begin: those of one chunk's neighbors are the same or the next ones.
    Coordinates cell = Coordinates::Filled(1);
    for (const ChunkFaces & chunk : m_Chunks)
    {
      for (int a = 0; a < MaxDimension; ++a)
      {
        cell[a] = std::max(cell[a], chunk.box->Extent(a));
      }
    }
    const auto cellOf = [&](const Coordinates & index) {
      std::array<std::int64_t, MaxDimension> at{};
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t from = index[a] - m_Image.lower[a];
        at[static_cast<std::size_t>(a)] = from >= 0 ? from / cell[a] : -((cell[a] - 1 - from) / cell[a]);
      }
      return at;
    };
    std::map<std::array<std::int64_t, MaxDimension>, std::vector<std::size_t>> cells;
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      cells[cellOf(m_Chunks[c].box->lower)].push_back(c);
    }
    for (const Coordinates & shift : this->FindShifts())
    {
      const bool isNone = shift == Coordinates{};
      for (std::size_t a = 0; a < m_Chunks.size(); ++a)
      {
        Coordinates begin = m_Chunks[a].box->lower;
        for (int axis = 0; axis < MaxDimension; ++axis)
        {
          begin[axis] -= shift[axis];
        }
        const auto middle = cellOf(begin);
        auto       near = middle;
        for (int code = 0; code < 243; ++code)
        {
          int rest = code;
          for (std::size_t axis = 0; axis < MaxDimension; ++axis, rest /= 3)
          {
            near[axis] = middle[axis] + rest % 3 - 1;
          }
          const auto found = cells.find(near);
          for (std::size_t n = 0; found != cells.end() && n < found->second.size(); ++n)
          {
            const std::size_t b = found->second[n];
            if (a < b || (a == b && !isNone))
            {
              this->JoinShifted(a, b, shift, join);
            }
          }
        }
      }
    }
  }

  /** The shifts that bring a chunk beside another one, across periodic edges; and none. */
  std::vector<Coordinates>
  FindShifts() const
  {
    std::vector<Coordinates> shifts;
    for (int code = 0; code < 243; ++code)
    {
      Coordinates shift{};
      int         rest = code;
      bool        isShift = true;
      for (int axis = 0; axis < MaxDimension; ++axis, rest /= 3)
      {
        const int  times = rest % 3 - 1;
        const bool wraps = m_Operation.periodic[axis] && m_Image.Extent(axis) == m_Operation.image[axis] &&
                           std::find(m_Operation.axes.begin(), m_Operation.axes.end(), axis) != m_Operation.axes.end();
        isShift = isShift && (times == 0 || wraps);
        shift[axis] = times * m_Image.Extent(axis);
      }
      if (isShift)
      {
        shifts.push_back(shift);
      }
    }
    return shifts;
  }

  template <typename TJoin>
  void
  JoinShifted(std::size_t a, std::size_t b, const Coordinates & shift, TJoin && join) const
  {
    const Box & box = *m_Chunks[a].box;
    const Box & own = *m_Chunks[b].box;
    // The direction to the other chunk; their faces are those along the first axis that parts them.
    int side[MaxDimension]{};
    int parting = -1;
    for (int axis = MaxDimension - 1; axis >= 0; --axis)
    {
      const std::int64_t lower = own.lower[axis] + shift[axis];
      const std::int64_t upper = own.upper[axis] + shift[axis];
      if (lower > box.upper[axis] || upper < box.lower[axis])
      {
        return;
      }
      side[axis] = lower == box.upper[axis] ? 1 : upper == box.lower[axis] ? -1 : 0;
      parting = side[axis] != 0 ? axis : parting;
    }
    if (parting < 0 || std::find(m_Operation.axes.begin(), m_Operation.axes.end(), parting) == m_Operation.axes.end())
    {
      return;
    }
    const Plane planeA = this->PlaneOf(a, parting, side[parting] > 0);
    const Plane planeB = this->PlaneOf(b, parting, side[parting] < 0);
    const int   line = parting == 0 ? 1 : 0;
    for (const Coordinates & offset : m_Offsets)
    {
      // The voxels whose neighbor at the offset lies in the other chunk.
      Box         here = box;
      Coordinates back{};
      bool        isOnSide = true;
      for (int axis = 0; axis < MaxDimension; ++axis)
      {
        isOnSide = isOnSide && (side[axis] == 0 || offset[axis] == side[axis]);
        back[axis] = offset[axis] - shift[axis];
        here.lower[axis] = std::max(here.lower[axis], own.lower[axis] - back[axis]);
        here.upper[axis] = std::min(here.upper[axis], own.upper[axis] - back[axis]);
      }
      if (!isOnSide || here.IsEmpty())
      {
        continue;
      }
      const std::int64_t length = here.Extent(line);
      Box                begins = here;
      begins.upper[line] = begins.lower[line] + 1;
      Coordinates at = begins.lower;
      for (std::int64_t n = begins.NumberOfVoxels(); n > 0; --n)
      {
        Coordinates beside = at;
        for (int axis = 0; axis < MaxDimension; ++axis)
        {
          beside[axis] += back[axis];
        }
        this->JoinLines(
          a, planeA, planeA.NumberOf(at, box), b, planeB, planeB.NumberOf(beside, own), line, length, join);
        for (int axis = 0; axis < MaxDimension && ++at[axis] == begins.upper[axis]; ++axis)
        {
          at[axis] = begins.lower[axis];
        }
      }
    }
  }

  /** Joins what lies side by side on two lines of faces, from voxels i and j on. */
  template <typename TJoin>
  void
  JoinLines(std::size_t a, const Plane & planeA, std::int64_t i, std::size_t b, const Plane & planeB, std::int64_t j,
            int axis, std::int64_t length, TJoin && join) const
  {
    std::uint32_t last[2] = { 0, 0 };
    for (; length > 0; --length, i += planeA.stride[axis], j += planeB.stride[axis])
    {
      const std::uint32_t first = planeA.components[i];
      const std::uint32_t second = planeB.components[j];
      if (first != 0 && second != 0 && (first != last[0] || second != last[1]) &&
          m_Operation.AreAlike(this->ValueAt(a, *planeA.face, i), this->ValueAt(b, *planeB.face, j)))
      {
        join(m_Chunks[a].first + first - 1, m_Chunks[b].first + second - 1);
        last[0] = first;
        last[1] = second;
      }
    }
  }

  std::vector<ChunkState>
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
    std::vector<ChunkState> solutions = this->NumberThoseThatBegin(0);
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
  std::vector<ChunkState>
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
    m_Count = before.back();
    CheckNumberOfLabels(m_Count, m_Operation.outputKind);
    std::vector<ChunkState> solutions(m_Chunks.size());
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
  ChunkState
  FindOffsetsOfRows(std::size_t c, std::vector<std::uint64_t> & before) const
  {
    const ChunkFaces & chunk = m_Chunks[c];
    const std::size_t  rows = chunk.before.size() - 1;
    ChunkState         solution(rows * sizeof(std::uint64_t));
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
  LabelThoseThatBegin(const std::vector<std::size_t> & ranks, const std::vector<ChunkState> & solutions)
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
  AddParts(const std::vector<std::size_t> & ranks, LabelSets & sets, std::vector<ChunkState> & solutions) const
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
  std::uint64_t                   m_Count{ 0 };
  /** For each component of each chunk, whether it begins elsewhere. */
  std::vector<std::vector<bool>> m_IsGiven;
  /** By ranks. */
  std::vector<std::uint64_t> m_Labels;
};

} // namespace

std::vector<ChunkState>
LabelOperation::Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const
{
  std::uint64_t count = 0;
  return this->SolveAndCount(chunks, summaries, count);
}

std::vector<ChunkState>
LabelOperation::SolveAndCount(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries,
                              std::uint64_t & count) const
{
  LabelSolver             solver(*this, chunks, summaries);
  std::vector<ChunkState> solutions = solver.Solve();
  count = solver.GetCount();
  return solutions;
}

} // namespace chunkwise
