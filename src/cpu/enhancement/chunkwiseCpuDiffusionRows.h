/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDiffusionRows_h
#define chunkwiseCpuDiffusionRows_h

#include <cstdint>

// Work of DiffusionOperation on rows, which are read and written up to the next multiple of 64 bytes.

namespace chunkwise
{

/** Most axes that take part. */
constexpr int DiffusionAxes = 5;

/** The fluxes between the voxels of two rows, `here` and `next`. */
template <typename TReal>
struct FluxStep
{
  const TReal * here{ nullptr };
  const TReal * next{ nullptr };
  TReal         scale{ 1 };
  /** For each other axis the rows after and before both rows, and half the scale. */
  int           others{ 0 };
  const TReal * hereAfter[DiffusionAxes]{};
  const TReal * hereBefore[DiffusionAxes]{};
  const TReal * nextAfter[DiffusionAxes]{};
  const TReal * nextBefore[DiffusionAxes]{};
  TReal         half[DiffusionAxes]{};
  /** Coherence alone: the tensors' elements of this axis with itself, then with each other one. */
  const TReal * hereTensor[1 + DiffusionAxes]{};
  const TReal * nextTensor[1 + DiffusionAxes]{};
  /** 1 / (2 contrast^2). */
  TReal        inverse{ 0 };
  bool         isCurvature{ false };
  bool         skipsNan{ false };
  std::int64_t n{ 0 };
  TReal *      flux{ nullptr };
};

/** A row and its neighbors along all axes. */
template <typename TReal>
struct NeighborStep
{
  int           axes{ 0 };
  const TReal * here{ nullptr };
  const TReal * after[DiffusionAxes]{};
  const TReal * before[DiffusionAxes]{};
  TReal         scale[DiffusionAxes]{};
  bool          skipsNan{ false };
  std::int64_t  n{ 0 };
  TReal *       out{ nullptr };
};

/** Rows of TotalVariation: `here` and `after` of NeighborStep are those of u', and `before` those of p. */
template <typename TReal>
struct VariationStep : NeighborStep<TReal>
{
  TReal   step{ 0 };
  TReal   weight{ 0 };
  TReal * dual[DiffusionAxes]{};
  /** The image, and u. */
  const TReal * image{ nullptr };
  TReal *       state{ nullptr };
};

template <typename TReal>
struct DiffusionFunctions
{
  void (*flux)(const FluxStep<TReal> & step);
  void (*coherence)(const FluxStep<TReal> & step);
  /** sum += after - before, or = where `isFirst`; before = after if `keeps`. */
  void (*add)(TReal * sum, const TReal * after, TReal * before, bool isFirst, bool keeps, std::int64_t n);
  /** out = here + timeStep * sum. */
  void (*update)(const NeighborStep<TReal> & step, const TReal * sum, TReal timeStep);
  /** out = here + timeStep * sum * root of the upwind gradient's square. */
  void (*updateCurvature)(const NeighborStep<TReal> & step, const TReal * sum, TReal timeStep);
  /** out = the squared length of the gradient. */
  void (*squares)(const NeighborStep<TReal> & step);
  /** dual = P(dual + step * grad u'). */
  void (*dual)(const VariationStep<TReal> & step);
  /** out = u' and state = u, from dual and before, the p of the voxels before. */
  void (*primal)(const VariationStep<TReal> & step);
};

/** The functions compiled for one instruction set. All sets give the same bits. */
struct DiffusionLevel
{
  DiffusionFunctions<float>  float32;
  DiffusionFunctions<double> float64;
};

/** For the level that GetCpuLevel() names. */
const DiffusionLevel &
GetDiffusionLevel();

} // namespace chunkwise

#endif
