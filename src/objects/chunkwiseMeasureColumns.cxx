/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The table: real numbers made of exact integers, one label after the other.
#include "chunkwiseError.h"
#include "chunkwiseMeasureTable.h"
#include "chunkwiseStatisticsSummary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace chunkwise
{

namespace
{

constexpr double Pi = 3.14159265358979323846;
constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

/** An object in physical units, made of a row. */
struct MeasuredObject
{
  double count{ 0 };
  double centroid[MaxSpatialAxes]{}; ///< in voxels
  double weighted[MaxSpatialAxes]{};
  /** Mean products of distances from the centroid along the image's axes. */
  double covariance[MaxSpatialAxes][MaxSpatialAxes]{};
  /** The inertia tensor's, descending, and the axes: row i is of eigenvalue i. The first moment of inertia is that
   * about the shortest axis. */
  double inertia[MaxSpatialAxes][MaxSpatialAxes]{};
  double eigenvalues[MaxSpatialAxes]{};
  double axes[MaxSpatialAxes][MaxSpatialAxes]{};
};

double
ToDouble(Int128 value)
{
  return static_cast<double>(value);
}

/** (n xy - x y) / n^2, the numerator exact where it fits 128 bits. */
double
CovarianceOf(Int128 n, Int128 x, Int128 y, Int128 xy)
{
  Int128     a = 0;
  Int128     b = 0;
  Int128     difference = 0;
  const bool isTooLarge =
    MultiplyOverflows(n, xy, a) || MultiplyOverflows(x, y, b) || SubtractOverflows(a, b, difference);
  const double count = ToDouble(n);
  return isTooLarge ? ToDouble(xy) / count - (ToDouble(x) / count) * (ToDouble(y) / count)
                    : ToDouble(difference) / count / count;
}

/** The eigenvalues of a symmetric matrix and, as rows, its eigenvectors, by Jacobi's rotations; descending. */
void
Diagonalise(int n, const double (&matrix)[MaxSpatialAxes][MaxSpatialAxes], double * values,
            double (&vectors)[MaxSpatialAxes][MaxSpatialAxes])
{
  double m[MaxSpatialAxes][MaxSpatialAxes];
  double v[MaxSpatialAxes][MaxSpatialAxes]{};
  for (int i = 0; i < n; ++i)
  {
    std::copy_n(matrix[i], n, m[i]);
    v[i][i] = 1;
  }
  constexpr int sweeps = 60;
  for (int sweep = 0; sweep < sweeps; ++sweep)
  {
    bool isDiagonal = true;
    for (int p = 0; p < n; ++p)
    {
      for (int q = p + 1; q < n; ++q)
      {
        const double scale = std::abs(m[p][p]) + std::abs(m[q][q]);
        if (m[p][q] == 0 || !(std::abs(m[p][q]) > scale * 1e-17))
        {
          m[p][q] = m[q][p] = 0;
          continue;
        }
        isDiagonal = false;
        const double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1);
        const double s = t * c;
        for (int k = 0; k < n; ++k)
        {
          const double kp = m[k][p];
          const double kq = m[k][q];
          m[k][p] = c * kp - s * kq;
          m[k][q] = s * kp + c * kq;
        }
        for (int k = 0; k < n; ++k)
        {
          const double pk = m[p][k];
          const double qk = m[q][k];
          m[p][k] = c * pk - s * qk;
          m[q][k] = s * pk + c * qk;
          const double vp = v[p][k];
          const double vq = v[q][k];
          v[p][k] = c * vp - s * vq;
          v[q][k] = s * vp + c * vq;
        }
      }
    }
    if (isDiagonal)
    {
      break;
    }
  }
  int order[MaxSpatialAxes] = { 0, 1, 2 };
  std::stable_sort(order, order + n, [&](int a, int b) { return m[a][a] > m[b][b]; });
  for (int i = 0; i < n; ++i)
  {
    values[i] = m[order[i]][order[i]];
    std::copy_n(v[order[i]], n, vectors[i]);
  }
}

/** Makes columns of a label's row. */
class RowReader
{
public:
  RowReader(const MeasurementSettings & settings, const MeasureLayout & layout, const MeasurementSpace & space)
    : m_Settings(settings)
    , m_Layout(layout)
    , m_Space(space)
  {
    for (int a = 0; a < layout.dimension; ++a)
    {
      m_Voxel *= std::abs(space.spacing[a]);
    }
  }

  double
  GetVoxel() const
  {
    return m_Voxel;
  }
  /** The area of a face across an axis. */
  double
  GetFace(int axis) const
  {
    double area = 1;
    for (int a = 0; a < m_Layout.dimension; ++a)
    {
      area *= a == axis ? 1 : std::abs(m_Space.spacing[a]);
    }
    return area;
  }

  MeasuredObject
  Read(const std::int64_t * row) const
  {
    const int      dimension = m_Layout.dimension;
    MeasuredObject object;
    const Int128   n = row[MeasureLayout::count];
    object.count = ToDouble(n);
    Int128 sums[MaxSpatialAxes];
    for (int a = 0; a < dimension; ++a)
    {
      // From the box's corner on, so that the remaining digits are the object's.
      const Int128 corner = row[MeasureLayout::lower + a];
      sums[a] = LoadWide(row + m_Layout.sums + 2 * a) - n * corner;
      object.centroid[a] = ToDouble(corner) + ToDouble(sums[a]) / object.count;
    }
    if (m_Layout.weighted)
    {
      const bool isFinite = m_Layout.low < m_Layout.high && !this->HasSpecials(row);
      for (int a = 0; a < dimension; ++a)
      {
        object.weighted[a] = isFinite ? this->GetWeightedMean(row, a) : NotANumber;
      }
    }
    if (m_Layout.moments)
    {
      const std::int64_t * product = row + m_Layout.products;
      double               trace = 0;
      for (int a = 0; a < dimension; ++a)
      {
        for (int b = 0; b <= a; ++b)
        {
          const Int128 ca = row[MeasureLayout::lower + a];
          const Int128 cb = row[MeasureLayout::lower + b];
          const Int128 shifted = LoadWide(product) - ca * sums[b] - cb * sums[a] - n * ca * cb;
          object.covariance[a][b] = object.covariance[b][a] =
            CovarianceOf(n, sums[a], sums[b], shifted) * std::abs(m_Space.spacing[a] * m_Space.spacing[b]);
          product += 2;
        }
        trace += object.covariance[a][a];
      }
      for (int a = 0; a < dimension; ++a)
      {
        for (int b = 0; b < dimension; ++b)
        {
          object.inertia[a][b] = (a == b ? trace : 0) - object.covariance[a][b];
        }
      }
      Diagonalise(dimension, object.inertia, object.eigenvalues, object.axes);
      for (int i = 0; i < dimension; ++i)
      {
        object.eigenvalues[i] = std::max(object.eigenvalues[i], 0.0);
      }
    }
    return object;
  }

  std::int64_t
  GetNaNs(const std::int64_t * row) const
  {
    return m_Layout.isReal ? row[m_Layout.specials] : 0;
  }
  /** As NumPy's: an infinity, NaN beside NaN or infinities of both signs. */
  double
  GetSum(const std::int64_t * row) const
  {
    if (m_Layout.isReal)
    {
      const std::int64_t * const specials = row + m_Layout.specials;
      if (specials[0] > 0 || (specials[1] > 0 && specials[2] > 0))
      {
        return NotANumber;
      }
      if (specials[1] > 0 || specials[2] > 0)
      {
        return specials[1] > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
      }
    }
    return m_Layout.low == m_Layout.high
             ? 0
             : RoundDigits(row + m_Layout.GetSum(), m_Layout.high - m_Layout.low, this->GetBias());
  }
  /** For integers, modulo 2^128. */
  Int128
  GetWholeSum(const std::int64_t * row) const
  {
    constexpr int one = StatisticsSummary::SumBias / DigitBits;
    UInt128       sum = 0;
    for (int i = m_Layout.low; i < m_Layout.high && i < one + 4; ++i)
    {
      sum += static_cast<UInt128>(static_cast<Int128>(row[m_Layout.GetSum() + i - m_Layout.low]))
             << (DigitBits * (i - one));
    }
    return static_cast<Int128>(sum);
  }
  double
  GetVariance(const std::int64_t * row) const
  {
    if (this->HasSpecials(row))
    {
      return NotANumber;
    }
    const int digits = m_Layout.high - m_Layout.low;
    return digits == 0 ? 0
                       : RoundVariance(row + m_Layout.GetSum(),
                                       digits,
                                       row + m_Layout.GetSquares(),
                                       2 * digits,
                                       this->GetBias(),
                                       row[MeasureLayout::count]);
  }
  /** The first place of the least (word `minimum`) or the largest voxel, or of NaN. */
  std::int64_t
  GetPlace(const std::int64_t * row, int word) const
  {
    return this->GetNaNs(row) > 0 ? row[m_Layout.specials + 3] : row[word + 1];
  }

private:
  bool
  HasSpecials(const std::int64_t * row) const
  {
    const std::int64_t * const specials = row + m_Layout.specials;
    return m_Layout.isReal && specials[0] + specials[1] + specials[2] > 0;
  }
  /** Both sums times a power of two, if doubles do not reach far enough. */
  double
  GetWeightedMean(const std::int64_t * row, int axis) const
  {
    const int  digits = m_Layout.high - m_Layout.low;
    const auto round = [&](int word, int count, int more) {
      return RoundDigits(row + word, count, this->GetBias() + more);
    };
    constexpr int further = 128;
    const int     more = std::isfinite(round(m_Layout.GetWeighted(axis), digits + 2, 0)) ? 0 : further;
    return round(m_Layout.GetWeighted(axis), digits + 2, more) / round(m_Layout.GetSum(), digits, more);
  }
  /** Digits, from the lowest one on. */
  int
  GetBias() const
  {
    return StatisticsSummary::SumBias - DigitBits * m_Layout.low;
  }

  const MeasurementSettings & m_Settings;
  const MeasureLayout &       m_Layout;
  const MeasurementSpace      m_Space;
  double                      m_Voxel{ 1 };
};

bool
IsSigned(PixelType kind)
{
  return DispatchPixelType(kind, [](auto pixel) { return std::is_signed<decltype(pixel)>::value; });
}

/** Whether one label's bits come before another's. */
bool
IsBefore(PixelType kind, std::uint64_t a, std::uint64_t b)
{
  return IsSigned(kind) ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
}

PixelType
WideKind(PixelType kind)
{
  return IsFloatingPoint(kind) ? kind : IsSigned(kind) ? PixelType::Int64 : PixelType::UInt64;
}

MeasurementColumn
MakeColumn(const std::string & name, PixelType kind)
{
  MeasurementColumn column;
  column.name = name;
  column.kind = kind;
  return column;
}

/** Adds columns to a table, row by row. */
class ColumnMaker
{
public:
  /** `slots`: the rows that the table has. */
  ColumnMaker(const MeasurementSettings & settings, const MeasureRows & rows, const MeasurementSpace & space,
              std::vector<std::uint32_t> slots, bool sumsFit)
    : m_Settings(settings)
    , m_Rows(rows)
    , m_Layout(rows.GetLayout())
    , m_Space(space)
    , m_Reader(settings, m_Layout, space)
    , m_Order(std::move(slots))
    , m_SumsFit(sumsFit)
  {}

  void
  Add(const std::string & property, MeasurementTable & table)
  {
    if (!this->AddShape(property, table) && !this->AddMoment(property, table))
    {
      this->AddIntensity(property, table);
    }
  }

private:
  using Row = const std::int64_t *;

  template <typename TGet>
  void
  AddIntegers(MeasurementTable & table, const std::string & name, TGet && get, PixelType kind = PixelType::Int64)
  {
    MeasurementColumn column = MakeColumn(name, kind);
    for (const std::uint32_t slot : m_Order)
    {
      column.integers.push_back(static_cast<std::int64_t>(get(m_Rows.GetRow(slot))));
    }
    table.push_back(std::move(column));
  }
  template <typename TGet>
  void
  AddReals(MeasurementTable & table, const std::string & name, TGet && get)
  {
    MeasurementColumn column = MakeColumn(name, PixelType::Float64);
    for (const std::uint32_t slot : m_Order)
    {
      column.reals.push_back(get(m_Rows.GetRow(slot)));
    }
    table.push_back(std::move(column));
  }
  template <typename TGet>
  void
  AddOfObjects(MeasurementTable & table, const std::string & name, TGet && get)
  {
    MeasurementColumn column = MakeColumn(name, PixelType::Float64);
    for (const MeasuredObject & object : this->GetObjects())
    {
      column.reals.push_back(get(object));
    }
    table.push_back(std::move(column));
  }
  template <typename TAdd>
  void
  ForEachAxis(const std::string & name, TAdd && add)
  {
    for (int k = 0; k < m_Layout.dimension; ++k)
    {
      add(name + "-" + std::to_string(k), this->AxisOf(k));
    }
  }
  template <typename TGet>
  void
  AddPoints(MeasurementTable & table, const std::string & name, bool isPhysical, TGet && get)
  {
    this->ForEachAxis(name, [&](const std::string & column, int axis) {
      this->AddOfObjects(table, column, [&](const MeasuredObject & object) {
        return isPhysical ? this->PointOf(get(object), axis) : get(object)[axis];
      });
    });
  }
  template <typename TGet>
  void
  AddPlaces(MeasurementTable & table, const std::string & name, TGet && get)
  {
    this->ForEachAxis(name, [&](const std::string & column, int axis) {
      this->AddIntegers(table, column, [&](Row row) { return this->IndexOf(get(row), axis); });
    });
  }
  void
  AddExtrema(MeasurementTable & table, const std::string & name, int word)
  {
    MeasurementColumn column = MakeColumn(name, WideKind(m_Settings.intensityKind));
    for (const std::uint32_t slot : m_Order)
    {
      Row row = m_Rows.GetRow(slot);
      DispatchPixelType(m_Settings.intensityKind, [&](auto pixel) {
        const auto value = FromOrdinal<decltype(pixel)>(static_cast<std::uint64_t>(row[word]));
        if constexpr (std::is_integral<decltype(pixel)>::value)
        {
          column.integers.push_back(static_cast<std::int64_t>(value));
        }
        else
        {
          column.reals.push_back(m_Reader.GetNaNs(row) > 0 ? NotANumber : static_cast<double>(value));
        }
      });
    }
    table.push_back(std::move(column));
  }

  /** Adds a column of counts, boxes, sizes and borders; whether there is one of this name. */
  bool
  AddShape(const std::string & property, MeasurementTable & table)
  {
    const int d = m_Layout.dimension;
    if (property == "label")
    {
      this->AddIntegers(
        table, "label", [](Row row) { return row[MeasureLayout::label]; }, WideKind(m_Settings.labelKind));
    }
    else if (property == "num_pixels")
    {
      this->AddIntegers(table, "num_pixels", [](Row row) { return row[MeasureLayout::count]; });
    }
    else if (property == "area")
    {
      this->AddReals(
        table, "area", [&](Row row) { return static_cast<double>(row[MeasureLayout::count]) * m_Reader.GetVoxel(); });
    }
    else if (property == "bbox")
    {
      for (int k = 0; k < 2 * d; ++k)
      {
        const int word = (k < d ? +MeasureLayout::lower : m_Layout.upper) + this->AxisOf(k % d);
        this->AddIntegers(table, "bbox-" + std::to_string(k), [word](Row row) { return row[word]; });
      }
    }
    else if (property == "area_bbox")
    {
      this->AddReals(table, "area_bbox", [&](Row row) { return this->CountBox(row) * m_Reader.GetVoxel(); });
    }
    else if (property == "extent")
    {
      this->AddReals(
        table, "extent", [&](Row row) { return static_cast<double>(row[MeasureLayout::count]) / this->CountBox(row); });
    }
    else if (property == "touches_border")
    {
      this->AddIntegers(
        table, "touches_border", [&](Row row) { return this->TouchesBorder(row) ? 1 : 0; }, PixelType::UInt8);
    }
    else if (property == "first_voxel")
    {
      this->AddPlaces(table, "first_voxel", [](Row row) { return row[MeasureLayout::first]; });
    }
    else if (property == "equivalent_diameter_area")
    {
      this->AddReals(table, "equivalent_diameter_area", [&](Row row) {
        const double size = static_cast<double>(row[MeasureLayout::count]) * m_Reader.GetVoxel();
        return d == 1 ? size : d == 2 ? std::sqrt(4 * size / Pi) : std::cbrt(6 * size / Pi);
      });
    }
    else if (property == "euler_number")
    {
      this->AddIntegers(table, "euler_number", [&](Row row) { return row[m_Layout.euler]; });
    }
    else if (property == "surface_area")
    {
      this->AddReals(table, "surface_area", [&](Row row) {
        double area = 0;
        for (int a = 0; a < d; ++a)
        {
          area += 2 * static_cast<double>(row[m_Layout.faces + a]) * m_Reader.GetFace(a);
        }
        return area;
      });
    }
    else
    {
      return false;
    }
    return true;
  }
  /** Adds a column of centroids, axes and moments; whether there is one of this name. */
  bool
  AddMoment(const std::string & property, MeasurementTable & table)
  {
    const int d = m_Layout.dimension;
    if (property == "centroid")
    {
      this->AddPoints(table, "centroid", false, [](const MeasuredObject & object) { return object.centroid; });
    }
    else if (property == "centroid_physical")
    {
      this->AddPoints(table, "centroid_physical", true, [](const MeasuredObject & object) { return object.centroid; });
    }
    else if (property == "inertia_tensor")
    {
      this->ForEachAxis("inertia_tensor", [&](const std::string & name, int i) {
        this->ForEachAxis(name, [&](const std::string & column, int j) {
          this->AddOfObjects(table, column, [i, j](const MeasuredObject & object) { return object.inertia[i][j]; });
        });
      });
    }
    else if (property == "inertia_tensor_eigvals")
    {
      for (int i = 0; i < d; ++i)
      {
        this->AddOfObjects(table, "inertia_tensor_eigvals-" + std::to_string(i), [i](const MeasuredObject & object) {
          return object.eigenvalues[i];
        });
      }
    }
    else if (property == "principal_axes")
    {
      for (int i = 0; i < d; ++i)
      {
        // The longest axis has the least moment of inertia.
        this->ForEachAxis("principal_axes-" + std::to_string(i), [&](const std::string & column, int axis) {
          this->AddOfObjects(table, column, [&](const MeasuredObject & object) {
            return this->DirectionOf(object.axes[d - 1 - i], axis);
          });
        });
      }
    }
    else if (property == "axis_major_length" || property == "axis_minor_length")
    {
      const bool isMajor = property == "axis_major_length";
      this->AddOfObjects(
        table, property, [d, isMajor](const MeasuredObject & object) { return GetAxisLength(object, d, isMajor); });
    }
    else if (property == "orientation")
    {
      this->AddOfObjects(
        table, "orientation", [d](const MeasuredObject & object) { return GetOrientation(object, d); });
    }
    else if (property == "centroid_weighted")
    {
      this->AddPoints(table, "centroid_weighted", false, [](const MeasuredObject & object) { return object.weighted; });
    }
    else if (property == "centroid_weighted_physical")
    {
      this->AddPoints(
        table, "centroid_weighted_physical", true, [](const MeasuredObject & object) { return object.weighted; });
    }
    else
    {
      return false;
    }
    return true;
  }
  /** Adds a column of intensities; whether there is one of this name. */
  bool
  AddIntensity(const std::string & property, MeasurementTable & table)
  {
    if (property == "intensity_sum")
    {
      this->AddSums(table);
    }
    else if (property == "intensity_mean")
    {
      this->AddReals(table, "intensity_mean", [&](Row row) {
        return m_Reader.GetSum(row) / static_cast<double>(row[MeasureLayout::count]);
      });
    }
    else if (property == "intensity_variance")
    {
      this->AddReals(table, "intensity_variance", [&](Row row) { return m_Reader.GetVariance(row); });
    }
    else if (property == "intensity_std")
    {
      this->AddReals(table, "intensity_std", [&](Row row) { return std::sqrt(m_Reader.GetVariance(row)); });
    }
    else if (property == "intensity_min" || property == "intensity_max")
    {
      this->AddExtrema(table, property, property == "intensity_min" ? m_Layout.minimum : m_Layout.maximum);
    }
    else if (property == "position_min" || property == "position_max")
    {
      const int word = property == "position_min" ? m_Layout.minimum : m_Layout.maximum;
      this->AddPlaces(table, property, [&, word](Row row) { return m_Reader.GetPlace(row, word); });
    }
    else
    {
      return false;
    }
    return true;
  }
  int
  AxisOf(int k) const
  {
    return m_Space.slowestFirst ? m_Layout.dimension - 1 - k : k;
  }
  std::int64_t
  IndexOf(std::int64_t linear, int axis) const
  {
    for (int a = 0; a < axis; ++a)
    {
      linear /= m_Settings.extent[a];
    }
    return axis + 1 < m_Layout.dimension ? linear % m_Settings.extent[axis] : linear;
  }
  double
  PointOf(const double * index, int axis) const
  {
    double point = m_Space.origin[axis];
    for (int a = 0; a < m_Layout.dimension; ++a)
    {
      point += m_Space.direction[axis][a] * m_Space.spacing[a] * index[a];
    }
    return point;
  }
  /** A direction in space of one along the axes, its largest part positive. */
  double
  DirectionOf(const double * vector, int axis) const
  {
    double whole[MaxSpatialAxes]{};
    int    largest = 0;
    for (int r = 0; r < m_Layout.dimension; ++r)
    {
      for (int a = 0; a < m_Layout.dimension; ++a)
      {
        whole[r] += m_Space.direction[r][a] * (m_Space.spacing[a] < 0 ? -vector[a] : vector[a]);
      }
      largest = std::abs(whole[r]) > std::abs(whole[largest]) ? r : largest;
    }
    return whole[largest] < 0 ? -whole[axis] : whole[axis];
  }
  double
  CountBox(const std::int64_t * row) const
  {
    double voxels = 1;
    for (int a = 0; a < m_Layout.dimension; ++a)
    {
      voxels *= static_cast<double>(row[m_Layout.upper + a] - row[MeasureLayout::lower + a]);
    }
    return voxels;
  }
  bool
  TouchesBorder(const std::int64_t * row) const
  {
    for (int a = 0; a < m_Layout.dimension; ++a)
    {
      if (m_Settings.extent[a] > 1 &&
          (row[MeasureLayout::lower + a] == 0 || row[m_Layout.upper + a] == m_Settings.extent[a]))
      {
        return true;
      }
    }
    return false;
  }
  /** Axes of the ellipse, or ellipsoid, that has these moments. */
  static double
  GetAxisLength(const MeasuredObject & object, int dimension, bool isMajor)
  {
    const double * const e = object.eigenvalues;
    switch (dimension)
    {
      case 1:
        return std::sqrt(12 * object.covariance[0][0]);
      case 2:
        return 4 * std::sqrt(isMajor ? e[0] : e[1]);
      default:
        return std::sqrt(10 * std::max(isMajor ? e[0] + e[1] - e[2] : e[1] + e[2] - e[0], 0.0));
    }
  }
  /** The angle from the second axis (y) to the major one, counterclockwise as x is to the right and y down. */
  static double
  GetOrientation(const MeasuredObject & object, int dimension)
  {
    if (dimension != 2)
    {
      return NotANumber;
    }
    const double a = object.inertia[1][1];
    const double b = object.inertia[0][1];
    const double c = object.inertia[0][0];
    if (a - c == 0)
    {
      return b < 0 ? Pi / 4 : -Pi / 4;
    }
    return 0.5 * std::atan2(-2 * b, c - a);
  }
  const std::vector<MeasuredObject> &
  GetObjects()
  {
    if (m_Objects.empty())
    {
      for (const std::uint32_t slot : m_Order)
      {
        m_Objects.push_back(m_Reader.Read(m_Rows.GetRow(slot)));
      }
    }
    return m_Objects;
  }
  /** Sums of integers are integers, where 64 bits hold all of them. */
  void
  AddSums(MeasurementTable & table)
  {
    MeasurementColumn column = MakeColumn("intensity_sum", PixelType::Float64);
    if (m_SumsFit)
    {
      column.kind = WideKind(m_Settings.intensityKind);
    }
    for (const std::uint32_t slot : m_Order)
    {
      if (IsFloatingPoint(column.kind))
      {
        column.reals.push_back(m_Reader.GetSum(m_Rows.GetRow(slot)));
      }
      else
      {
        column.integers.push_back(static_cast<std::int64_t>(m_Reader.GetWholeSum(m_Rows.GetRow(slot))));
      }
    }
    table.push_back(std::move(column));
  }

  const MeasurementSettings &      m_Settings;
  const MeasureRows &              m_Rows;
  const MeasureLayout &            m_Layout;
  const MeasurementSpace &         m_Space;
  const RowReader                  m_Reader;
  const std::vector<std::uint32_t> m_Order;
  const bool                       m_SumsFit;
  std::vector<MeasuredObject>      m_Objects;
};

const MeasurementProperty &
FindProperty(const std::string & name)
{
  for (const MeasurementProperty & property : GetMeasurementProperties())
  {
    if (name == property.name)
    {
      return property;
    }
  }
  std::string all;
  for (const MeasurementProperty & property : GetMeasurementProperties())
  {
    all += std::string(all.empty() ? "" : ", ") + property.name;
  }
  throw ParameterError("Columns", name, "one of " + all);
}

/** Whether a column takes more than numbers of voxels and sums. */
bool
NeedsDetails(const std::string & name)
{
  const auto plain = { "label", "num_pixels", "area", "equivalent_diameter_area", "intensity_sum", "intensity_mean" };
  return std::find(plain.begin(), plain.end(), name) == plain.end();
}

} // namespace

PixelValue
MeasurementColumn::GetValue(std::size_t row) const
{
  return kind == PixelType::Float32  ? PixelValue(static_cast<float>(reals[row]))
         : IsFloatingPoint(kind)     ? PixelValue(reals[row])
         : kind == PixelType::UInt64 ? PixelValue(static_cast<std::uint64_t>(integers[row]))
                                     : PixelValue(integers[row]);
}

const std::vector<MeasurementProperty> &
GetMeasurementProperties()
{
  // intensity, surfaces, moments, weighted, default
  static const std::vector<MeasurementProperty> all = {
    { "label", "the label", false, false, false, false, true },
    { "num_pixels", "voxels", false, false, false, false, true },
    { "area", "the size in physical units: voxels times the size of one", false, false, false, false, true },
    { "bbox", "first voxel and the one after the last, along each axis", false, false, false, false, true },
    { "area_bbox", "the size of that box", false, false, false, false, false },
    { "extent", "the part of the box that the object fills", false, false, false, false, true },
    { "touches_border", "1 if the object has voxels at the edge of the image", false, false, false, false, true },
    { "first_voxel", "the first voxel in raster order", false, false, false, false, true },
    { "centroid", "the mean index", false, false, false, false, true },
    { "centroid_physical", "the point of that index in space", false, false, false, false, true },
    { "equivalent_diameter_area", "of the ball of the same size", false, false, false, false, true },
    { "inertia_tensor", "of the voxels about their centroid", false, false, true, false, false },
    { "inertia_tensor_eigvals", "its eigenvalues, descending", false, false, true, false, true },
    { "principal_axes", "directions in space, the longest axis first", false, false, true, false, false },
    { "axis_major_length", "the longest axis of the ellipsoid with the same moments", false, false, true, false, true },
    { "axis_minor_length", "its shortest axis", false, false, true, false, true },
    { "orientation", "of the major axis, in two dimensions", false, false, true, false, true },
    { "euler_number", "objects plus cavities minus tunnels", false, true, false, false, true },
    { "surface_area", "of exposed faces of voxels", false, true, false, false, true },
    { "intensity_sum", "exact, rounded once", true, false, false, false, true },
    { "intensity_mean", "the mean", true, false, false, false, true },
    { "intensity_variance", "the mean square deviation from the mean", true, false, false, false, false },
    { "intensity_std", "its root", true, false, false, false, true },
    { "intensity_min", "the least value", true, false, false, false, true },
    { "intensity_max", "the largest value", true, false, false, false, true },
    { "position_min", "the first voxel with the least value", true, false, false, false, true },
    { "position_max", "the first voxel with the largest value", true, false, false, false, true },
    { "centroid_weighted", "the mean index weighted by the intensity", true, false, false, true, true },
    { "centroid_weighted_physical", "the point of that index in space", true, false, false, true, false },
  };
  return all;
}

std::vector<std::string>
GetDefaultProperties(bool hasIntensity)
{
  std::vector<std::string> names;
  for (const MeasurementProperty & property : GetMeasurementProperties())
  {
    if (property.isDefault && (hasIntensity || !property.needsIntensity))
    {
      names.emplace_back(property.name);
    }
  }
  return names;
}

void
SetPartsFor(const std::vector<std::string> & properties, MeasurementSettings & settings)
{
  settings.details = settings.moments = settings.surfaces = settings.weighted = false;
  for (const std::string & name : properties)
  {
    const MeasurementProperty & property = FindProperty(name);
    if (property.needsIntensity && !settings.hasIntensity)
    {
      throw ParameterError("Columns", name, "possible without an image of intensities");
    }
    settings.details = settings.details || NeedsDetails(name);
    settings.moments = settings.moments || property.needsMoments;
    settings.surfaces = settings.surfaces || property.needsSurfaces;
    settings.weighted = settings.weighted || property.needsWeighted;
  }
}

void
Measurements::State::Prepare()
{
  if (isPrepared)
  {
    return;
  }
  meter.Take((rows.GetSize() - order.capacity()) * sizeof(std::uint32_t));
  order.resize(rows.GetSize());
  std::iota(order.begin(), order.end(), std::uint32_t{ 0 });
  const std::uint64_t sign = IsSigned(settings.labelKind) ? std::uint64_t{ 1 } << 63 : 0;
  const auto          isBefore = [&](std::uint32_t a, std::uint32_t b) {
    return (rows.GetLabels()[a] ^ sign) < (rows.GetLabels()[b] ^ sign);
  };
  if (!std::is_sorted(order.begin(), order.end(), isBefore))
  {
    std::sort(order.begin(), order.end(), isBefore);
  }
  sumsFit = settings.hasIntensity && !IsFloatingPoint(settings.intensityKind);
  const RowReader reader(settings, rows.GetLayout(), MeasurementSpace());
  for (std::uint32_t slot = 0; sumsFit && slot < rows.GetSize(); ++slot)
  {
    const Int128 sum = reader.GetWholeSum(rows.GetRow(slot));
    using Signed = std::numeric_limits<std::int64_t>;
    sumsFit = IsSigned(settings.intensityKind) ? sum >= Signed::min() && sum <= Signed::max()
                                               : sum <= std::numeric_limits<std::uint64_t>::max();
  }
  isPrepared = true;
}

std::pair<std::size_t, std::size_t>
Measurements::State::GetRange(std::int64_t begin, std::int64_t end) const
{
  const auto size = static_cast<std::int64_t>(order.size());
  const auto first = std::min(std::max<std::int64_t>(begin, 0), size);
  return { static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, std::min(end, size))) };
}

MeasurementTable
Measurements::MakeTable(const MeasurementSpace & space, const std::vector<std::string> & properties, std::int64_t begin,
                        std::int64_t end, Executor * executor) const
{
  const MeasurementSettings & settings = m_State->settings;
  MeasurementTable            table;
  m_State->Prepare();
  const auto             range = m_State->GetRange(begin, end);
  constexpr std::int64_t rowsOfPart = 256;
  const auto             first = static_cast<std::int64_t>(range.first);
  const auto             last = static_cast<std::int64_t>(range.second);
  const std::int64_t     parts = (last - first + rowsOfPart - 1) / rowsOfPart;
  if (executor && parts > 1)
  {
    std::vector<MeasurementTable> tables(static_cast<std::size_t>(parts));
    executor->ParallelFor(parts, [&](std::int64_t i, unsigned int) {
      const std::int64_t from = first + i * rowsOfPart;
      tables[static_cast<std::size_t>(i)] = this->MakeTable(space, properties, from, std::min(from + rowsOfPart, last));
    });
    table = std::move(tables.front());
    for (std::size_t i = 1; i < tables.size(); ++i)
    {
      for (std::size_t c = 0; c < table.size(); ++c)
      {
        const MeasurementColumn & more = tables[i][c];
        table[c].reals.insert(table[c].reals.end(), more.reals.begin(), more.reals.end());
        table[c].integers.insert(table[c].integers.end(), more.integers.begin(), more.integers.end());
      }
    }
    return table;
  }
  const auto  at = [&](std::size_t i) { return m_State->order.begin() + static_cast<std::ptrdiff_t>(i); };
  ColumnMaker maker(settings, m_State->rows, space, { at(range.first), at(range.second) }, m_State->sumsFit);
  for (const std::string & name : properties)
  {
    const MeasurementProperty & property = FindProperty(name);
    if ((property.needsIntensity && !settings.hasIntensity) || (property.needsSurfaces && !settings.surfaces) ||
        (property.needsMoments && !settings.moments) || (property.needsWeighted && !settings.weighted) ||
        (NeedsDetails(name) && !m_State->rows.GetLayout().details))
    {
      throw ParameterError("Columns", name, "among what was measured");
    }
    if (name != "orientation" || settings.dimension == 2)
    {
      maker.Add(name, table);
    }
  }
  return table;
}

MeasurementTable
Measurements::MakeContacts(const MeasurementSpace & space) const
{
  const MeasurementSettings & settings = m_State->settings;
  const RowReader             reader(settings, m_State->rows.GetLayout(), space);
  // The list, and the table made of it.
  constexpr std::size_t perContact = sizeof(LabelContact) + 4 * sizeof(std::int64_t);
  m_State->meter.Take(m_State->contacts.GetSize() * perContact);
  std::vector<LabelContact> contacts = m_State->contacts.List();
  for (LabelContact & contact : contacts)
  {
    if (IsBefore(settings.labelKind, contact.neighbor, contact.label))
    {
      std::swap(contact.label, contact.neighbor);
    }
  }
  std::sort(contacts.begin(), contacts.end(), [&](const LabelContact & a, const LabelContact & b) {
    return a.label != b.label ? IsBefore(settings.labelKind, a.label, b.label)
                              : IsBefore(settings.labelKind, a.neighbor, b.neighbor);
  });
  const PixelType  kind = WideKind(settings.labelKind);
  MeasurementTable table{ MakeColumn("label", kind),
                          MakeColumn("neighbor", kind),
                          MakeColumn("faces", PixelType::Int64),
                          MakeColumn("area", PixelType::Float64) };
  for (const LabelContact & contact : contacts)
  {
    std::int64_t faces = 0;
    double       area = 0;
    for (int a = 0; a < settings.dimension; ++a)
    {
      faces += contact.faces[a];
      area += static_cast<double>(contact.faces[a]) * reader.GetFace(a);
    }
    table[0].integers.push_back(static_cast<std::int64_t>(contact.label));
    table[1].integers.push_back(static_cast<std::int64_t>(contact.neighbor));
    table[2].integers.push_back(faces);
    table[3].reals.push_back(area);
  }
  m_State->meter.GiveBack(m_State->contacts.GetSize() * perContact);
  return table;
}

} // namespace chunkwise
