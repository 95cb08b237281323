/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelTable_h
#define chunkwiseLabelTable_h

#include "chunkwiseExecutor.h"
#include "chunkwiseGeometry.h"
#include "chunkwisePixelValue.h"

#include <string>
#include <utility>
#include <vector>

namespace chunkwise
{

/** Labels that become others: objects are merged where several become one, and removed where one becomes 0. Labels
 * that are not in the table stay. The table is applied once: a new label is not looked up again. */
class Chunkwise_EXPORT LabelTable
{
public:
  /** An old label and its new one. */
  using Pair = std::pair<PixelValue, PixelValue>;

  /** Throws ParameterError that begins with "Replace" if a number is no value of the labels' kind, if 0 is to become
   * another label, or if a label is given twice with different ones. */
  LabelTable(PixelType kind, const std::vector<Pair> & pairs);

  /** The pairs in lines "old,new" of a text; spaces and a heading are passed over. Throws ParameterError that begins
   * with "Replace". */
  static std::vector<Pair>
  ReadPairs(const std::string & text);

  std::size_t
  GetSize() const
  {
    return m_Old.size();
  }
  /** Writes the voxels of `box` from one view to another, or in place; both have the labels' kind and stride 1 along x.
   */
  void
  Apply(const BufferView & labels, const BufferView & output, const Box & box, Executor & executor) const;

private:
  /** The bits of labels, extended to 64: old ones ascending, and new ones in their order. */
  std::vector<std::uint64_t> m_Old;
  std::vector<std::uint64_t> m_New;
  PixelType                  m_Kind;
};

} // namespace chunkwise

#endif
