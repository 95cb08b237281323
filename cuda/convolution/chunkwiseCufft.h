/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCufft_h
#define chunkwiseCufft_h

#include <cstddef>
#include <cuda_runtime_api.h>
#include <memory>
#include <string>
#include <vector>

// cuFFT, opened at run time: nothing links to it, and nothing but this needs it.
namespace chunkwise
{

/** Whether a libcufft can be opened and works on the current device; if not, `reason` says why. Tried once for each
 * process. CHUNKWISE_CUFFT may name the file. */
bool
HasCufft(std::string * reason = nullptr);

/** A transform of one or two axes, of real numbers to half spectra and back, or of complex numbers; in place, and many
 * at a time. Extents and distances are in numbers of the sort that they are of, as cuFFT has them. */
struct CufftLines
{
  enum class Sort
  {
    RealToComplex,
    ComplexToReal,
    Complex
  };
  Sort      sort{ Sort::Complex };
  bool      isDouble{ false };
  int       rank{ 1 };
  long long length[2]{ 1, 1 };   ///< the axis of the rows last
  long long inExtent[2]{ 1, 1 }; ///< of memory
  long long outExtent[2]{ 1, 1 };
  long long stride{ 1 };   ///< between a line's complex numbers
  long long distance{ 1 }; ///< from a transform to the next, in complex numbers

  std::string
  GetKey() const;
};

/** Plans for `count` transforms of a kind on the current device: as many at a time as need no more than `workBytes` of
 * work area. Plans are kept (up to some hundreds), with cuFFT's memory for each: tables of a line's size, which no
 * budget counts. Throws DeviceError. Thread-safe. */
class CufftPlan
{
public:
  static std::shared_ptr<const CufftPlan>
  Get(const CufftLines & lines, long long count, std::size_t workBytes);

  /** All transforms, the first at `data`; with `work` for the work area. */
  void
  Run(cudaStream_t stream, void * data, bool inverse, void * work) const;
  /** Bytes of work area that are used. */
  std::size_t
  GetWorkBytes() const;

  struct Group;

private:
  CufftLines                          m_Lines;
  std::vector<std::shared_ptr<Group>> m_Groups; ///< in order; the same one several times
};

} // namespace chunkwise

#endif
