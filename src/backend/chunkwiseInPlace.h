/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseInPlace_h
#define chunkwiseInPlace_h

namespace chunkwise
{

/** Base of operations whose output may be one of the inputs, voxel for voxel: kernels read a voxel of the inputs for
 * the same voxel of the output alone, before they write that. */
class InPlace
{
protected:
  InPlace() = default;
  InPlace(const InPlace &) = default;
  InPlace &
  operator=(const InPlace &) = default;
  virtual ~InPlace() = default;
};

} // namespace chunkwise

#endif
