/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelHoles_h
#define chunkwiseLabelHoles_h

#include "chunkwiseManager.h"

#include <vector>

namespace chunkwise
{

/** Fills the holes of labelled objects. A hole is a connected part of the background (neighbors share a face) that
 * reaches no edge of the image and that one object alone touches, at a face of its voxels; that object gets it.
 *
 * The parts of the background have numbers from 1 on in a second image, 0 elsewhere, as LabelOperation numbers them.
 * Both images are read twice: for Add, and then for Fill. */
class Chunkwise_EXPORT LabelHoles
{
public:
  /** `labels` is a kind of integers, `parts` uint32 or uint64. Along axes 3 and 4 the image has one voxel. The tables
   * take no more than `memory` bytes; 0: no limit. Throws ParameterError. */
  LabelHoles(PixelType labels, PixelType parts, const Coordinates & extent, std::uint64_t memory = 0);

  /** The axis along which images come in boxes, which are whole along all others: the last one with several voxels. */
  int
  GetAxis() const
  {
    return m_Axis;
  }
  /** Makes room for parts with numbers up to this one, as Add does when it meets them. Throws BudgetError. */
  void
  Reserve(std::uint64_t part);
  /** A box of both images, which begins where the one before it ended. Views have stride 1 along x. Throws BudgetError
   * if the tables need more memory. */
  void
  Add(const BufferView & labels, const BufferView & parts, const Box & box);
  /** After all of the image was added: holes that are filled. */
  std::uint64_t
  GetCount() const;
  /** Gives the voxels of holes in `box` their objects' labels. */
  void
  Fill(const BufferView & labels, const BufferView & parts, const Box & box) const;

private:
  enum class Touched : std::uint8_t
  {
    Nothing,
    One,
    Open ///< several objects, or the image's edge
  };

  template <typename TLabel, typename TPart>
  void
  AddRow(const BufferView & labels, const BufferView & parts, const Box & box, const Coordinates & at);
  void
  Touch(std::uint64_t part, std::uint64_t label)
  {
    if (m_States[part] == Touched::Nothing)
    {
      m_States[part] = Touched::One;
      m_Labels[part] = label;
    }
    else if (m_States[part] == Touched::One && m_Labels[part] != label)
    {
      m_States[part] = Touched::Open;
    }
  }
  void
  Check(const BufferView & labels, const BufferView & parts, const Box & box) const;

  PixelType     m_LabelKind;
  PixelType     m_PartKind;
  Coordinates   m_Extent;
  std::uint64_t m_Memory;
  int           m_Axis{ 0 };
  std::int64_t  m_Next{ 0 }; ///< along the axis
  /** By the numbers of parts; bits of labels. */
  std::vector<Touched>       m_States{ Touched::Nothing };
  std::vector<std::uint64_t> m_Labels{ 0 };
  /** The plane before the next box, of both images. */
  std::vector<char> m_LastLabels;
  std::vector<char> m_LastParts;
};

/** Fills the holes of an image of labels in memory, whose box begins at 0: numbers the parts of the background first.
 * Executor, backend, devices and budgets are those of `how`; of the host's budget a byte, and 4 or 8 bytes, a voxel go
 * to the background. The number of holes. Throws ParameterError, BudgetError, and Aborted, after which the labels are
 * partly filled. */
Chunkwise_EXPORT std::uint64_t
FillLabelHoles(Manager & manager, const BufferView & labels, const ExecutionRequest & how, Monitor * monitor = nullptr);

} // namespace chunkwise

#endif
