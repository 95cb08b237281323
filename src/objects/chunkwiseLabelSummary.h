/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelSummary_h
#define chunkwiseLabelSummary_h

#include "chunkwiseLabelOperation.h"

namespace chunkwise
{

/** One of the planes of voxels at the faces of a chunk. */
struct LabelFace
{
  int  axis;
  bool isUpper;
  /** Voxels, x fastest, and where they are in the summary: for each its label in the chunk, 0 for the background; and
   * its value, where the rule asks for values. */
  std::int64_t voxels;
  std::size_t  labels;
  std::size_t  values;
};

/** The layout of a chunk's summary. The chunk is labelled as a separate image. First comes the number of components
 * that begin in each row, 32 bits each; then its faces. */
struct LabelSummaryLayout
{
  LabelSummaryLayout(const LabelOperation & operation, const Box & box);

  std::int64_t rows;
  /** Bytes of a label. */
  std::size_t labelBytes;
  LabelFace   faces[2 * MaxSpatialAxes];
  int         numberOfFaces;
  std::size_t bytes;
};

/** The labels of a chunk's components: for each row an offset of 64 bits, then the parts, ascending, as many as the
 * bytes have. Or, of a block, one offset for all rows. */
struct LabelSolution
{
  LabelSolution(const void * data, std::size_t bytes, std::int64_t rows)
    : offsets(static_cast<const std::uint64_t *>(data))
    , before(0)
    , parts(reinterpret_cast<const LabelOfPart *>(offsets + rows))
    , numberOfParts(
        static_cast<std::int64_t>((bytes - static_cast<std::size_t>(rows) * sizeof(*offsets)) / sizeof(LabelOfPart)))
  {}
  /** `theParts`: those of the numbering, in the memory of whoever asks. */
  LabelSolution(const LabelNumbering & numbering, const LabelOfPart * theParts)
    : offsets(nullptr)
    , before(numbering.before)
    , parts(theParts)
    , numberOfParts(static_cast<std::int64_t>(numbering.parts.size()))
  {}

  /** The label of a component that begins in `row` and has the label `inPart` in the chunk. */
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        GetLabel(std::int64_t row, std::uint64_t inPart) const
  {
    std::int64_t low = 0;
    std::int64_t high = numberOfParts;
    while (low < high)
    {
      const std::int64_t middle = low + (high - low) / 2;
      const bool         isBefore = parts[middle].inPart < inPart;
      low = isBefore ? middle + 1 : low;
      high = isBefore ? high : middle;
    }
    return low < numberOfParts && parts[low].inPart == inPart
             ? parts[low].label
             : (offsets ? offsets[row] : before) + inPart - static_cast<std::uint64_t>(low);
  }

  const std::uint64_t * offsets;
  std::uint64_t         before;
  const LabelOfPart *   parts;
  std::int64_t          numberOfParts;
};

/** Rows along x of a box. */
inline std::int64_t
CountRows(const Box & box)
{
  return box.NumberOfVoxels() / box.Extent(0);
}

/** Sets of numbers that are joined: each set's number is its smallest. */
class LabelSets
{
public:
  explicit LabelSets(std::size_t count);
  std::size_t
  Find(std::size_t i);
  void
  Join(std::size_t a, std::size_t b);

private:
  std::vector<std::size_t> m_Parents;
};

} // namespace chunkwise

#endif
