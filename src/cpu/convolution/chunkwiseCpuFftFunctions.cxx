/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set. As in chunkwiseCpuLevelFunctions.cxx everything is in its namespace, and only
// headers without inline functions are included.
#include "chunkwiseCpuFft.h"
#include "chunkwiseCpuSquare.h"
#include "chunkwiseFftButterflies.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

template <typename T, int VBytes>
struct Vector
{
  typedef T type __attribute__((vector_size(VBytes), aligned(VBytes)));
};

template <typename T>
class Fft
{
public:
  using V = typename Vector<T, 64>::type;
  static constexpr std::int64_t Lanes = FftLanes<T>;
  static constexpr std::int64_t Cell = FftCell<T>;

  /** A cell is transformed in parts that registers hold. */
  using Part = typename Vector<T, RegisterBytes>::type;
  static constexpr std::int64_t Parts = 64 / RegisterBytes;

  /** One pass: for p in [0, m), q in [0, s): the points q + s (p + m j), j in [0, R), go to q + s (R p + k). */
  template <int R, bool VFirst, bool VLast>
  static void
  Pass(const T * in, std::int64_t inStride, std::int64_t live, T * out, std::int64_t outStride, std::int64_t from,
       std::int64_t to, std::int64_t m, std::int64_t s, const T * twiddles, bool inverse)
  {
    // The inverse is the transform with real and imaginary parts exchanged, at the first load and the last store.
    const std::int64_t inRe = VFirst && inverse ? Lanes : 0;
    const std::int64_t outRe = VLast && inverse ? Lanes : 0;
    const std::int64_t inStep = VFirst ? inStride * Cell : Cell;
    const std::int64_t outStep = VLast ? outStride * Cell : Cell;
    for (std::int64_t p = 0; p < m; ++p)
    {
      for (std::int64_t i = 0; i < s * Parts; ++i)
      {
        const std::int64_t q = i / Parts;
        const std::int64_t lane = i % Parts * (Lanes / Parts);
        Part               re[R];
        Part               im[R];
#pragma GCC unroll 8
        for (int j = 0; j < R; ++j)
        {
          const std::int64_t at = q + s * (p + m * j);
          if (VFirst && at >= live)
          {
            re[j] = im[j] = Part{};
          }
          else
          {
            const T * const cell = in + at * inStep + lane;
            re[j] = *reinterpret_cast<const Part *>(cell + inRe);
            im[j] = *reinterpret_cast<const Part *>(cell + (Lanes - inRe));
          }
        }
        FftButterfly<T, R>(re, im);
        if (!VLast)
        {
#pragma GCC unroll 8
          for (int k = 1; k < R; ++k)
          {
            const T    c = twiddles[2 * (p * (R - 1) + k - 1)];
            const T    d = twiddles[2 * (p * (R - 1) + k - 1) + 1];
            const Part product = re[k] * c - im[k] * d;
            im[k] = re[k] * d + im[k] * c;
            re[k] = product;
          }
        }
#pragma GCC unroll 8
        for (int k = 0; k < R; ++k)
        {
          const std::int64_t at = q + s * (R * p + k);
          if (!VLast || (at >= from && at < to))
          {
            T * const cell = out + (VLast ? at - from : at) * outStep + lane;
            *reinterpret_cast<Part *>(cell + outRe) = re[k];
            *reinterpret_cast<Part *>(cell + (Lanes - outRe)) = im[k];
          }
        }
      }
    }
  }

  template <bool VFirst, bool VLast, typename... TArguments>
  static void
  Dispatch(int radix, TArguments... arguments)
  {
    switch (radix)
    {
      case 2:
        return Pass<2, VFirst, VLast>(arguments...);
      case 3:
        return Pass<3, VFirst, VLast>(arguments...);
      case 4:
        return Pass<4, VFirst, VLast>(arguments...);
      case 5:
        return Pass<5, VFirst, VLast>(arguments...);
      case 7:
        return Pass<7, VFirst, VLast>(arguments...);
      default:
        return Pass<8, VFirst, VLast>(arguments...);
    }
  }

  static void
  Transform(const FftPlan<T> & plan, FftLine<T> in, std::int64_t live, FftLine<T> out, std::int64_t from,
            std::int64_t to, bool inverse, T * work)
  {
    T *          current = work;
    T *          other = work + plan.length * Cell;
    std::int64_t left = plan.length;
    std::int64_t s = 1;
    const T *    twiddles = plan.twiddles;
    if (plan.passes == 0)
    {
      for (std::int64_t i = 0; i < (from == 0 && to > 0 ? Cell : 0); ++i)
      {
        out.cells[i] = live > 0 ? in.cells[i] : T(0);
      }
      return;
    }
    for (int i = 0; i < plan.passes; ++i)
    {
      const int          radix = plan.radices[i];
      const std::int64_t m = left / radix;
      const T * const    source = i == 0 ? in.cells : current;
      const bool         last = i + 1 == plan.passes;
      T * const          target = last ? out.cells : other;
      if (i == 0 && last)
      {
        Dispatch<true, true>(radix, source, in.stride, live, target, out.stride, from, to, m, s, twiddles, inverse);
      }
      else if (i == 0)
      {
        Dispatch<true, false>(radix, source, in.stride, live, target, out.stride, from, to, m, s, twiddles, inverse);
      }
      else if (last)
      {
        Dispatch<false, true>(radix, source, in.stride, live, target, out.stride, from, to, m, s, twiddles, inverse);
      }
      else
      {
        Dispatch<false, false>(radix, source, in.stride, live, target, out.stride, from, to, m, s, twiddles, inverse);
      }
      other = current;
      current = target;
      twiddles += 2 * m * (radix - 1);
      left = m;
      s *= radix;
    }
  }

  static void
  Multiply(T * cells, const T * factors, std::int64_t factorStride, std::int64_t n)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      V * const       cell = reinterpret_cast<V *>(cells + i * Cell);
      const V * const factor = reinterpret_cast<const V *>(factors + i * factorStride * Cell);
      const V         re = cell[0] * factor[0] - cell[1] * factor[1];
      cell[1] = cell[0] * factor[1] + cell[1] * factor[0];
      cell[0] = re;
    }
  }

  /** Squares of rows [0, rowCount) and columns [0, columnCount), multiples of a square's side: from(row, column) and
   * to(column, row) are where numbers begin that go to and fro; nullptr: zeros, and nowhere. */
  template <typename TFrom, typename TTo>
  static void
  Transpose(std::int64_t rowCount, std::int64_t columnCount, TFrom && from, TTo && to)
  {
    constexpr std::int64_t Side = Square<T>::Side;
    alignas(64) const T    zeros[Side]{};
    alignas(64) T          unused[Side];
    for (std::int64_t row = 0; row < rowCount; row += Side)
    {
      for (std::int64_t column = 0; column < columnCount; column += Side)
      {
        const T * in[Side];
        T *       out[Side];
        for (std::int64_t i = 0; i < Side; ++i)
        {
          const T * const begin = from(row + i, column);
          T * const       end = to(column + i, row);
          in[i] = begin ? begin : zeros;
          out[i] = end ? end : unused;
        }
        Square<T>::Transpose(in, out);
      }
    }
  }

  static void
  Spread(T * cells, int part, const T * const * rows, std::int64_t n)
  {
    T * const          to = cells + part * Lanes;
    const std::int64_t whole = n / Square<T>::Side * Square<T>::Side;
    Transpose(
      Lanes,
      whole,
      [&](std::int64_t l, std::int64_t x) { return rows[l] ? rows[l] + x : nullptr; },
      [&](std::int64_t x, std::int64_t l) { return to + x * Cell + l; });
    for (std::int64_t x = whole; x < n; ++x)
    {
      for (std::int64_t l = 0; l < Lanes; ++l)
      {
        to[x * Cell + l] = rows[l] ? rows[l][x] : T(0);
      }
    }
  }

  static void
  Collect(const T * cells, int part, T * const * rows, std::int64_t n)
  {
    const T * const    from = cells + part * Lanes;
    const std::int64_t whole = n / Square<T>::Side * Square<T>::Side;
    Transpose(
      whole,
      Lanes,
      [&](std::int64_t x, std::int64_t l) { return from + x * Cell + l; },
      [&](std::int64_t l, std::int64_t x) { return rows[l] ? rows[l] + x : nullptr; });
    for (std::int64_t l = 0; l < Lanes; ++l)
    {
      for (std::int64_t x = whole; rows[l] && x < n; ++x)
      {
        rows[l][x] = from[x * Cell + l];
      }
    }
  }

  static void
  Separate(const T * cells, std::int64_t length, T * const * rowsA, T * const * rowsB)
  {
    const std::int64_t half = length / 2 + 1;
    for (std::int64_t k0 = 0; k0 < half; k0 += Lanes)
    {
      // Frequencies in lanes after a transposition of Lanes x Lanes numbers, four times.
      alignas(64) T      part[4][Lanes][Lanes];
      const std::int64_t count = half - k0 < Lanes ? half - k0 : Lanes;
      for (std::int64_t j = 0; j < Lanes; ++j)
      {
        const std::int64_t k = k0 + j;
        V                  a[2] = { V{}, V{} };
        V                  b[2] = { V{}, V{} };
        if (j < count)
        {
          const V * const z = reinterpret_cast<const V *>(cells + k * Cell);
          const V * const c = reinterpret_cast<const V *>(cells + (k ? length - k : 0) * Cell);
          a[0] = z[0] + c[0];
          a[1] = z[1] - c[1];
          b[0] = z[1] + c[1];
          b[1] = c[0] - z[0];
        }
        *reinterpret_cast<V *>(part[0][j]) = a[0];
        *reinterpret_cast<V *>(part[1][j]) = a[1];
        *reinterpret_cast<V *>(part[2][j]) = b[0];
        *reinterpret_cast<V *>(part[3][j]) = b[1];
      }
      for (int p = 0; p < 4; ++p)
      {
        T * const * const  rows = p < 2 ? rowsA : rowsB;
        const std::int64_t at = k0 / Lanes * Cell + p % 2 * Lanes;
        Transpose(
          Lanes,
          Lanes,
          [&](std::int64_t j, std::int64_t l) { return part[p][j] + l; },
          [&](std::int64_t l, std::int64_t j) { return rows[l] ? rows[l] + at + j : nullptr; });
      }
    }
  }

  static void
  Combine(T * cells, std::int64_t length, const T * const * rowsA, const T * const * rowsB)
  {
    const std::int64_t half = length / 2 + 1;
    for (std::int64_t k0 = 0; k0 < half; k0 += Lanes)
    {
      alignas(64) T part[4][Lanes][Lanes];
      for (int p = 0; p < 4; ++p)
      {
        const T * const * const rows = p < 2 ? rowsA : rowsB;
        const std::int64_t      at = k0 / Lanes * Cell + p % 2 * Lanes;
        Transpose(
          Lanes,
          Lanes,
          [&](std::int64_t l, std::int64_t j) { return rows[l] ? rows[l] + at + j : nullptr; },
          [&](std::int64_t j, std::int64_t l) { return part[p][j] + l; });
      }
      for (std::int64_t k = k0; k < half && k < k0 + Lanes; ++k)
      {
        const std::int64_t j = k - k0;
        const V            aRe = *reinterpret_cast<const V *>(part[0][j]);
        const V            aIm = *reinterpret_cast<const V *>(part[1][j]);
        const V            bRe = *reinterpret_cast<const V *>(part[2][j]);
        const V            bIm = *reinterpret_cast<const V *>(part[3][j]);
        V * const          z = reinterpret_cast<V *>(cells + k * Cell);
        z[0] = aRe - bIm;
        z[1] = aIm + bRe;
        if (k > 0 && 2 * k != length)
        {
          V * const c = reinterpret_cast<V *>(cells + (length - k) * Cell);
          c[0] = aRe + bIm;
          c[1] = bRe - aIm;
        }
      }
    }
  }

  static FftFunctions<T>
  Make()
  {
    return { Transform, Multiply, Spread, Collect, Separate, Combine };
  }
};

FftFunctions<float>
MakeFftFunctionsFloat()
{
  return Fft<float>::Make();
}

FftFunctions<double>
MakeFftFunctionsDouble()
{
  return Fft<double>::Make();
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
