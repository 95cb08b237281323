/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTransformProvider_h
#define chunkwiseTransformProvider_h

namespace chunkwise
{

/** Whose transforms a convolution takes. */
enum class TransformProvider
{
  Auto,  ///< the library's own; on a device cuFFT, where it is there, for kernels of more than 512 voxels along an axis
  Own,   ///< the library's own
  CuFFT, ///< NVIDIA's cuFFT, on CUDA devices: libcufft, opened at run time
  FFTW   ///< FFTW, on the CPU: the module ChunkwiseFftw, opened at run time
};

} // namespace chunkwise

#endif
