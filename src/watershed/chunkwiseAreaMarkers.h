/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAreaMarkers_h
#define chunkwiseAreaMarkers_h

#include "chunkwiseOutOfCoreRunner.h"

namespace chunkwise
{

/** Markers of an image, in the raster order of the image in the end; all are counted, `most` are kept (0: all). */
struct AreaMarkers
{
  void
  Add(const std::vector<std::uint64_t> & markers)
  {
    count += markers.size();
    if (most == 0 || count <= most)
    {
      places.insert(places.end(), markers.begin(), markers.end());
    }
  }

  std::vector<std::uint64_t> places;
  std::uint64_t              most{ 0 };
  std::uint64_t              count{ 0 };
};

// Markers of images in memory and in files, in blocks as results of area openings are. The request's operation is an
// AreaOperation with `findsMarkers`, its sources are the image and the mask, if there is one.

/** The least bytes of host memory for FindAreaMarkers, without the markers. */
std::uint64_t
GetLeastBytesOfMarkers(const OutOfCoreRequest & request);
/** The bytes with which one block is the image, or there are as few of them as can be. */
std::uint64_t
GetBytesOfMarkersInMemory(const OutOfCoreRequest & request);
/** Adds all markers, in any order. Throws as OutOfCoreRunner::Run. */
void
FindAreaMarkers(const OutOfCoreRequest & request, AreaMarkers & markers, Monitor * monitor);

} // namespace chunkwise

#endif
