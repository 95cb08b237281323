/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseImageSource_h
#define chunkwiseImageSource_h

#include "chunkwiseGeometry.h"

namespace chunkwise
{

/** The kinds of access that an image in boxes does well. */
struct ImageAccess
{
  /** Boxes may come in any order. Else they come in ascending order along the last axis that has more than one voxel:
   * compressed files can only be read, or written, from the beginning on. */
  bool anyOrder{ true };
  /** Boxes smaller than the image cost about their own bytes. Else the first Read, or Finish, takes the whole image
   * into memory. */
  bool inPieces{ true };
  /** Host memory that the source or sink holds itself while it works, beside the views it is given. */
  std::uint64_t heldBytes{ 0 };
  /** Voxels along each axis that are stored as one, such as a compressed block: a stream reads, and writes, whole ones
   * along the axis that it divides, so that none is decoded or encoded for two divisions. */
  Coordinates unit{ Coordinates::Filled(1) };
  /** A sink keeps parts of units until the rest comes, outside memory. A stream writes parts only where a whole unit
   * has no room in memory. */
  bool partsOfUnits{ false };
  /** A stream passes a whole division to one call, not in pieces: the image has its own threads. */
  bool wholeBoxes{ false };
};

/** An image that is read in boxes. Coordinates begin at 0. Read may be called from several threads at once where
 * anyOrder is true. */
class Chunkwise_EXPORT ImageSource
{
public:
  virtual ~ImageSource();
  virtual Coordinates
  GetExtent() const = 0;
  virtual PixelType
  GetKind() const = 0;
  virtual ImageAccess
  GetAccess() const = 0;
  /** Fills `box` of `view`, which contains it and has the image's kind. Throws if a single voxel cannot be had. */
  virtual void
  Read(const Box & box, const BufferView & view) = 0;
};

/** An image that is written in boxes, each voxel once. Nothing is there under its final name before Finish. */
class Chunkwise_EXPORT ImageSink
{
public:
  virtual ~ImageSink();
  virtual Coordinates
  GetExtent() const = 0;
  virtual PixelType
  GetKind() const = 0;
  virtual ImageAccess
  GetAccess() const = 0;
  /** Takes a part of the room that the image needs, where that saves time later: true if there is more to take. One
   * thread calls it, before Write. Throws if there is no room. */
  virtual bool
  TakeRoom();
  /** Writes `box` of `view`, which contains it and has the image's kind. Throws if a single byte cannot be written. */
  virtual void
  Write(const Box & box, const BufferView & view) = 0;
  /** Everything was written: makes it durable and gives it its final name. Throws, and leaves nothing under that name,
   * if that fails. Without it the destructor removes what was written. */
  virtual void
  Finish() = 0;
};

} // namespace chunkwise

#endif
