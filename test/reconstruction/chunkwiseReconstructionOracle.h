/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReconstructionOracle_h
#define chunkwiseReconstructionOracle_h

#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <vector>

// Morphological reconstruction by its definition, one voxel at a time from a strict heap, and what is built on it.
namespace chunkwise
{
namespace oracle
{

/** The offsets between neighbours. */
inline std::vector<Coordinates>
Neighbours(const ReconstructionOperation & operation)
{
  std::vector<Coordinates> offsets;
  Box                      around{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    around.lower[a] = a < operation.spatialDimension ? -1 : 0;
    around.upper[a] = a < operation.spatialDimension ? 2 : 1;
  }
  ForEachIndex(around, [&](const Coordinates & offset) {
    int moved = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      moved += offset[a] != 0;
    }
    if (moved == 1 || (moved > 1 && operation.fullyConnected))
    {
      offsets.push_back(offset);
    }
  });
  return offsets;
}

template <typename TVisit>
void
ForEachNeighbour(const Box & box, const std::vector<Coordinates> & offsets, const Coordinates & index, TVisit && visit)
{
  for (const Coordinates & offset : offsets)
  {
    Coordinates neighbour = index;
    bool        inside = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      neighbour[a] += offset[a];
      inside = inside && neighbour[a] >= 0 && neighbour[a] < box.upper[a];
    }
    if (inside)
    {
      visit(static_cast<const Coordinates &>(neighbour));
    }
  }
}

/** Marker and mask to the reconstruction. Values become ranks, so that nothing here depends on how they are stored: 0
 * is no number, and by erosion the largest number has the lowest rank. */
template <typename T>
std::vector<T>
Reconstruct(const ReconstructionOperation & operation, const Box & box, const std::vector<T> & marker,
            const std::vector<T> & mask)
{
  std::vector<T> numbers;
  for (const std::vector<T> * image : { &marker, &mask })
  {
    std::copy_if(image->begin(), image->end(), std::back_inserter(numbers), [](T value) { return value == value; });
  }
  const auto less = [&](T a, T b) { return operation.erosion ? b < a : a < b; };
  std::sort(numbers.begin(), numbers.end(), less);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const auto rankOf = [&](T value) -> std::size_t {
    return value != value ? 0 : 1 + (std::lower_bound(numbers.begin(), numbers.end(), value, less) - numbers.begin());
  };
  std::vector<std::size_t> through;
  std::vector<std::size_t> state;
  for (std::size_t i = 0; i < mask.size(); ++i)
  {
    through.push_back(rankOf(mask[i]));
    state.push_back(std::min(rankOf(marker[i]), through[i]));
  }
  const BufferView                                          places = DenseView(nullptr, PixelType::UInt8, box);
  std::priority_queue<std::pair<std::size_t, std::int64_t>> heap;
  std::vector<Coordinates>                                  indices;
  ForEachIndex(box, [&](const Coordinates & index) {
    heap.emplace(state[indices.size()], static_cast<std::int64_t>(indices.size()));
    indices.push_back(index);
  });
  const std::vector<Coordinates> offsets = Neighbours(operation);
  while (!heap.empty())
  {
    const auto [rank, at] = heap.top();
    heap.pop();
    if (rank != state[static_cast<std::size_t>(at)])
    {
      continue;
    }
    ForEachNeighbour(box, offsets, indices[static_cast<std::size_t>(at)], [&](const Coordinates & neighbour) {
      const auto        to = static_cast<std::size_t>(places.Offset(neighbour));
      const std::size_t arrives = std::min(state[static_cast<std::size_t>(at)], through[to]);
      if (arrives > state[to])
      {
        state[to] = arrives;
        heap.emplace(arrives, static_cast<std::int64_t>(to));
      }
    });
  }
  std::vector<T> result;
  for (const std::size_t rank : state)
  {
    result.push_back(rank == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(numbers[rank - 1] + T(0)));
  }
  return result;
}

/** Whether the plateau of each voxel has no neighbour beyond it. A plateau of the lowest integer has none below it
 * that could mark it; one that is all of its volume is what the operation says. */
template <typename T>
std::vector<bool>
FindExtrema(const ReconstructionOperation & operation, const Box & box, const std::vector<T> & image)
{
  const auto               offsets = Neighbours(operation);
  const BufferView         places = DenseView(nullptr, PixelType::UInt8, box);
  std::vector<Coordinates> indices;
  ForEachIndex(box, [&](const Coordinates & index) { indices.push_back(index); });
  std::vector<bool> extremum(image.size(), false);
  std::vector<bool> seen(image.size(), false);
  for (std::size_t first = 0; first < image.size(); ++first)
  {
    if (seen[first] || image[first] != image[first])
    {
      continue;
    }
    std::vector<std::size_t> plateau{ first };
    seen[first] = true;
    bool highest =
      !(std::numeric_limits<T>::is_integer &&
        image[first] == (operation.erosion ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest()));
    for (std::size_t i = 0; i < plateau.size(); ++i)
    {
      ForEachNeighbour(box, offsets, indices[plateau[i]], [&](const Coordinates & neighbour) {
        const auto to = static_cast<std::size_t>(places.Offset(neighbour));
        highest = highest && !(operation.erosion ? image[to] < image[first] : image[to] > image[first]);
        if (!seen[to] && image[to] == image[first])
        {
          seen[to] = true;
          plateau.push_back(to);
        }
      });
    }
    std::size_t volume = 1;
    for (int a = 0; a < operation.spatialDimension; ++a)
    {
      volume *= static_cast<std::size_t>(box.Extent(a));
    }
    highest = plateau.size() == volume ? operation.flatIsExtremum : highest;
    for (const std::size_t at : plateau)
    {
      extremum[at] = highest;
    }
  }
  return extremum;
}

template <typename T>
T
Saturate(__int128 value)
{
  const __int128 low = std::numeric_limits<T>::lowest();
  const __int128 high = std::numeric_limits<T>::max();
  return static_cast<T>(std::min(std::max(value, low), high));
}

/** The result of a run of the operation; `marker` and `second` are read if they are inputs. */
template <typename T>
std::vector<T>
Run(const ReconstructionOperation & operation, const Box & box, std::vector<T> marker, const std::vector<T> & second,
    const std::vector<T> & mask)
{
  const T down = operation.height.template As<T>();
  using Limits = std::numeric_limits<T>;
  const T nothing = operation.erosion ? (Limits::is_integer ? Limits::max() : Limits::infinity())
                                      : (Limits::is_integer ? Limits::lowest() : -Limits::infinity());
  if (operation.marker == ReconstructionMarker::Agreeing)
  {
    for (std::size_t i = 0; i < mask.size(); ++i)
    {
      marker[i] = marker[i] == second[i] ? mask[i] : nothing;
    }
  }
  else if (operation.marker != ReconstructionMarker::Image)
  {
    marker = mask;
    std::size_t at = 0;
    ForEachIndex(box, [&](const Coordinates & index) {
      T &  value = marker[at++];
      bool edge = false;
      bool alone = true;
      for (int a = 0; a < operation.spatialDimension; ++a)
      {
        edge = edge || (box.upper[a] > 1 && (index[a] == 0 || index[a] + 1 == box.upper[a]));
        alone = alone && box.upper[a] == 1;
      }
      edge = edge || alone;
      if (operation.marker == ReconstructionMarker::Border && !edge)
      {
        value = nothing;
      }
      else if (operation.marker == ReconstructionMarker::Shifted)
      {
        if constexpr (std::numeric_limits<T>::is_integer)
        {
          value = Saturate<T>(operation.erosion ? __int128{ value } + down : __int128{ value } - down);
        }
        else
        {
          value = operation.erosion ? value + down : value - down;
        }
      }
    });
  }
  if (operation.result == ReconstructionResult::Extrema && operation.marker == ReconstructionMarker::NextBelow)
  {
    std::vector<T> result;
    for (const bool is : FindExtrema(operation, box, mask))
    {
      result.push_back((is ? operation.extremum : operation.elsewhere).template As<T>());
    }
    return result;
  }
  std::vector<T> result = Reconstruct(operation, box, marker, mask);
  if (operation.result == ReconstructionResult::Residue)
  {
    for (std::size_t i = 0; i < result.size(); ++i)
    {
      const T large = operation.erosion ? result[i] : mask[i];
      const T small = operation.erosion ? mask[i] : result[i];
      if constexpr (std::numeric_limits<T>::is_integer)
      {
        result[i] = Saturate<T>(__int128{ large } - small);
      }
      else
      {
        result[i] = large == small ? T(0) : large - small;
      }
    }
  }
  return result;
}

} // namespace oracle
} // namespace chunkwise

#endif
