/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of images on other grids, and where these grids lie.
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseResampleField.h"
#include "chunkwiseResampleOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** Part of a voxel that is a rounding error of a matrix. */
constexpr double RoundingOfMatrix = 1e-12;

/** A grid in space: along the spatial axes, which are few. */
struct SpatialGrid
{
  int                 n{ 0 };
  std::vector<double> spacing;
  std::vector<double> origin;
  std::vector<double> direction; ///< rows

  double
  Direction(int row, int column) const
  {
    return direction[static_cast<std::size_t>(row * n + column)];
  }
};

/** Solves matrix * x = right for each column of `right`, rows of `columns` numbers; false: the matrix is singular. */
bool
SolveLinear(std::vector<double> matrix, std::vector<double> & right, int n, int columns)
{
  const auto at = [n](std::vector<double> & values, int row, int column, int width) -> double & {
    return values[static_cast<std::size_t>(row * width + column)];
  };
  for (int k = 0; k < n; ++k)
  {
    int pivot = k;
    for (int row = k + 1; row < n; ++row)
    {
      pivot = std::abs(at(matrix, row, k, n)) > std::abs(at(matrix, pivot, k, n)) ? row : pivot;
    }
    if (!(std::abs(at(matrix, pivot, k, n)) > 0))
    {
      return false;
    }
    for (int column = 0; column < n; ++column)
    {
      std::swap(at(matrix, k, column, n), at(matrix, pivot, column, n));
    }
    for (int column = 0; column < columns; ++column)
    {
      std::swap(at(right, k, column, columns), at(right, pivot, column, columns));
    }
    for (int row = 0; row < n; ++row)
    {
      const double factor = row == k ? 0 : at(matrix, row, k, n) / at(matrix, k, k, n);
      for (int column = 0; column < n && factor != 0; ++column)
      {
        at(matrix, row, column, n) -= factor * at(matrix, k, column, n);
      }
      for (int column = 0; column < columns && factor != 0; ++column)
      {
        at(right, row, column, columns) -= factor * at(right, k, column, columns);
      }
    }
  }
  for (int row = 0; row < n; ++row)
  {
    for (int column = 0; column < columns; ++column)
    {
      at(right, row, column, columns) /= at(matrix, row, row, n);
    }
  }
  return true;
}

/** Numbers that rounding has moved away from whole ones. */
double
Snap(double number, double scale)
{
  const double whole = std::nearbyint(number);
  // There is one 0.
  return std::abs(number - whole) <= RoundingOfMatrix * scale ? whole + 0.0 : number;
}

/** The grid of the output, and the points of its voxels in the image. */
class ResampleGrid
{
public:
  ResampleGrid(const CheckedParameters & p, const FilterImage & image)
    : output(image)
    , axes(p.SpatialAxes())
    , n(static_cast<int>(axes.size()))
  {
    std::sort(axes.begin(), axes.end());
    from = this->Describe(image);
    to = from;
    const bool isMoved = this->Choose(p, image);
    for (int i = 0; i < n; ++i)
    {
      const int a = axes[static_cast<std::size_t>(i)];
      output.spacing[a] = to.spacing[static_cast<std::size_t>(i)];
      output.origin[a] = to.origin[static_cast<std::size_t>(i)];
      for (int k = 0; k < n; ++k)
      {
        output.direction[a][axes[static_cast<std::size_t>(k)]] = to.Direction(i, k);
      }
    }
    if (isMoved || p.Has("Affine"))
    {
      this->Map(p);
    }
    if (p.Flag("DisplacementsArePoints"))
    {
      this->MapPoints(p);
    }
  }

  /** The vectors of Displacements, along the operation's axes `places`. */
  std::shared_ptr<const ResampleField>
  MakeField(const CheckedParameters & p, const int (&places)[ResampleOperation::Axes]) const
  {
    const auto field = std::make_shared<ResampleField>();
    field->vectors = p.SharedKernel("Displacements");
    const KernelStack & vectors = *field->vectors;
    std::int64_t        voxels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      voxels *= vectors.extent[a];
      if (vectors.extent[a] != 1 && std::find(axes.begin(), axes.end(), a) == axes.end())
      {
        throw ParameterError("Displacements", ToString(vectors.extent), "1 voxel along axes that are not resampled");
      }
    }
    if (static_cast<int>(vectors.kernels.size()) != n || voxels != static_cast<std::int64_t>(vectors.kernels[0].size()))
    {
      throw ParameterError("Displacements",
                           std::to_string(vectors.kernels.size()) + " components a voxel",
                           std::to_string(n) + " of them");
    }
    // The step that a voxel along each axis adds to a place of the field, then the place of voxel 0.
    std::vector<double> steps = this->FindPlaces(p, vectors.extent);
    // The distance that each component of a vector adds to a point, in voxels of the image.
    const std::vector<double> affine = this->ReadAffine(p);
    std::vector<double>       moves(static_cast<std::size_t>(n * n));
    for (int i = 0; i < n; ++i)
    {
      for (int k = 0; k < n; ++k)
      {
        moves[static_cast<std::size_t>(i * n + k)] = affine[static_cast<std::size_t>(i * (n + 1) + k)];
      }
    }
    this->Solve(from, moves, n);
    for (int i = 0; i < ResampleOperation::Axes; ++i)
    {
      const int row = this->FindAxis(places[i]);
      for (int o = 0; o < ResampleOperation::Axes; ++o)
      {
        const int column = this->FindAxis(places[o]);
        field->step[i][o] =
          row < 0 || column < 0 ? 0 : Snap(steps[static_cast<std::size_t>(row * (n + 1) + column)], 1);
        field->toImage[i][o] = row < 0 || o >= n ? 0 : Snap(moves[static_cast<std::size_t>(row * n + o)], 1);
      }
      field->extent[i] = row < 0 ? 1 : vectors.extent[places[i]];
      field->output[i] = output.extent[places[i]];
      field->start[i] = row < 0 ? 0 : Snap(steps[static_cast<std::size_t>(row * (n + 1) + n)], 1);
    }
    field->Prepare();
    return field;
  }
  /** The row of an axis of the image; -1: it is not resampled. */
  int
  FindAxis(int a) const
  {
    const auto found = std::find(axes.begin(), axes.end(), a);
    return found == axes.end() ? -1 : static_cast<int>(found - axes.begin());
  }

  FilterImage         output;
  std::vector<int>    axes;
  int                 n;
  SpatialGrid         from;
  SpatialGrid         to;
  std::vector<double> matrix; ///< rows: of an output voxel to a point in voxels of the image
  std::vector<double> offset;

private:
  /** Right sides, of `columns` numbers a row, in space become those in voxels of a grid. */
  static void
  Solve(const SpatialGrid & grid, std::vector<double> & right, int columns)
  {
    std::vector<double> axesInSpace;
    for (int i = 0; i < grid.n; ++i)
    {
      for (int k = 0; k < grid.n; ++k)
      {
        axesInSpace.push_back(grid.Direction(i, k) * grid.spacing[static_cast<std::size_t>(k)]);
      }
    }
    if (!SolveLinear(axesInSpace, right, grid.n, columns))
    {
      throw ParameterError("OutputDirection", "that of a grid", "linearly independent columns", " has no ");
    }
  }

  /** The places of the output's voxels on the field's grid: rows of a matrix, with the place of voxel 0 behind it. */
  std::vector<double>
  FindPlaces(const CheckedParameters & p, const Coordinates & extent) const
  {
    std::vector<double> places(static_cast<std::size_t>(n * (n + 1)), 0.0);
    if (!p.Has("DisplacementGrid"))
    {
      for (int i = 0; i < n; ++i)
      {
        const int a = axes[static_cast<std::size_t>(i)];
        if (extent[a] != output.extent[a])
        {
          throw ParameterError("Displacements",
                               ToString(extent) + " voxels",
                               ToString(output.extent) + ", those of the output, without DisplacementGrid",
                               ": there must be ");
        }
        places[static_cast<std::size_t>(i * (n + 1) + i)] = 1;
      }
      return places;
    }
    const std::vector<double> & numbers = ListOf(p, "DisplacementGrid", n * (n + 3));
    SpatialGrid                 grid;
    grid.n = n;
    grid.spacing.assign(numbers.begin() + n, numbers.begin() + 2 * n);
    grid.origin.assign(numbers.begin() + 2 * n, numbers.begin() + 3 * n);
    grid.direction.assign(numbers.begin() + 3 * n, numbers.end());
    for (int i = 0; i < n; ++i)
    {
      if (numbers[static_cast<std::size_t>(i)] != static_cast<double>(extent[axes[static_cast<std::size_t>(i)]]))
      {
        throw ParameterError(
          "DisplacementGrid", std::to_string(numbers[static_cast<std::size_t>(i)]), "the size of Displacements first");
      }
      for (int k = 0; k < n; ++k)
      {
        places[static_cast<std::size_t>(i * (n + 1) + k)] =
          to.Direction(i, k) * to.spacing[static_cast<std::size_t>(k)];
      }
      places[static_cast<std::size_t>(i * (n + 1) + n)] =
        to.origin[static_cast<std::size_t>(i)] - grid.origin[static_cast<std::size_t>(i)];
    }
    Solve(grid, places, n + 1);
    return places;
  }

  /** Points are those of the field alone. */
  void
  MapPoints(const CheckedParameters & p)
  {
    if (!p.Has("Displacements"))
    {
      throw ParameterError("DisplacementsArePoints", "on", "off without Displacements", ": it must be ");
    }
    const std::vector<double> affine = this->ReadAffine(p);
    std::vector<double>       zero(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
    {
      zero[static_cast<std::size_t>(i)] =
        affine[static_cast<std::size_t>(i * (n + 1) + n)] - from.origin[static_cast<std::size_t>(i)];
    }
    Solve(from, zero, 1);
    matrix.assign(static_cast<std::size_t>(n * n), 0.0);
    offset = zero;
  }

  SpatialGrid
  Describe(const FilterImage & image) const
  {
    SpatialGrid grid;
    grid.n = n;
    for (const int a : axes)
    {
      grid.spacing.push_back(image.spacing[a]);
      grid.origin.push_back(image.origin[a]);
      for (const int b : axes)
      {
        grid.direction.push_back(image.direction[a][b]);
      }
    }
    return grid;
  }

  static const std::vector<double> &
  ListOf(const CheckedParameters & p, const std::string & name, int count)
  {
    const std::vector<double> & list = p.Reals(name);
    if (static_cast<int>(list.size()) != count)
    {
      throw ParameterError(name, std::to_string(list.size()) + " numbers", std::to_string(count) + " of them");
    }
    return list;
  }

  /** The other grid in space. True: its origin or direction is given, so that points go through space; else both grids
   * have their edges in common, and the matrix and the offset are set. */
  bool
  Choose(const CheckedParameters & p, const FilterImage & image)
  {
    if (p.Has("Reference"))
    {
      for (const char * const other : { "OutputSpacing", "Size", "Scale", "OutputOrigin", "OutputDirection" })
      {
        if (p.Has(other))
        {
          throw ParameterError(other, "given", "given without Reference, which says all of the grid", ": it must be ");
        }
      }
      const std::vector<double> & grid = ListOf(p, "Reference", n * (n + 3));
      for (int i = 0; i < n; ++i)
      {
        const double size = grid[static_cast<std::size_t>(i)];
        if (!(size >= 1 && size < 9e15 && size == std::floor(size)))
        {
          throw ParameterError("Reference", std::to_string(size), "sizes of at least 1 first");
        }
        output.extent[axes[static_cast<std::size_t>(i)]] = static_cast<std::int64_t>(size);
      }
      to.spacing.assign(grid.begin() + n, grid.begin() + 2 * n);
      to.origin.assign(grid.begin() + 2 * n, grid.begin() + 3 * n);
      to.direction.assign(grid.begin() + 3 * n, grid.end());
      return true;
    }
    if (p.Has("OutputSpacing") && p.Has("Scale"))
    {
      throw ParameterError("Scale", "given", "given without Spacing", ": it must be ");
    }
    matrix.assign(static_cast<std::size_t>(n * n), 0.0);
    offset.assign(static_cast<std::size_t>(n), 0.0);
    for (int i = 0; i < n; ++i)
    {
      const auto   k = static_cast<std::size_t>(i);
      const int    a = axes[k];
      const double length = static_cast<double>(image.extent[a]);
      double       step = 1;
      if (p.Has("OutputSpacing"))
      {
        const double spacing = p.RealsOverAxes("OutputSpacing")[static_cast<std::size_t>(a)];
        step = spacing / std::abs(from.spacing[k]);
        to.spacing[k] = std::copysign(spacing, from.spacing[k]);
      }
      else if (p.Has("Scale"))
      {
        step = 1 / p.RealsOverAxes("Scale")[static_cast<std::size_t>(a)];
      }
      else if (p.Has("Size"))
      {
        step = length / static_cast<double>(p.OverAxes("Size")[a]);
      }
      to.spacing[k] = p.Has("OutputSpacing") ? to.spacing[k] : from.spacing[k] * step;
      const double wanted = std::floor(length / step + 0.5);
      if (!p.Has("Size") && !(wanted < 9e15))
      {
        throw ParameterError(p.Has("OutputSpacing") ? "OutputSpacing" : "Scale",
                             "one",
                             "fewer than 9e15 voxels along each axis",
                             " gives no ");
      }
      output.extent[a] = p.Has("Size")
                           ? p.OverAxes("Size")[a]
                           : std::max<std::int64_t>(image.extent[a] > 0 ? 1 : 0, static_cast<std::int64_t>(wanted));
      matrix[static_cast<std::size_t>(i * n + i)] = step;
      offset[k] = 0.5 * step - 0.5;
    }
    // The first voxel's edge stays.
    for (int i = 0; i < n; ++i)
    {
      for (int k = 0; k < n; ++k)
      {
        to.origin[static_cast<std::size_t>(i)] +=
          from.Direction(i, k) * from.spacing[static_cast<std::size_t>(k)] * offset[static_cast<std::size_t>(k)];
      }
    }
    if (p.Has("OutputOrigin"))
    {
      to.origin = ListOf(p, "OutputOrigin", n);
    }
    if (p.Has("OutputDirection"))
    {
      to.direction = ListOf(p, "OutputDirection", n * n);
    }
    return p.Has("OutputOrigin") || p.Has("OutputDirection");
  }

  /** Rows of the matrix, each with its number of the translation behind it. */
  std::vector<double>
  ReadAffine(const CheckedParameters & p) const
  {
    std::vector<double> affine(static_cast<std::size_t>(n * (n + 1)), 0.0);
    const auto          at = [this](int row, int column) { return static_cast<std::size_t>(row * (n + 1) + column); };
    for (int i = 0; i < n; ++i)
    {
      affine[at(i, i)] = 1;
    }
    if (p.Has("Affine"))
    {
      affine = p.Reals("Affine");
      const auto rows = static_cast<std::size_t>(n * (n + 1));
      bool       isLast = affine.size() == rows + static_cast<std::size_t>(n + 1);
      for (std::size_t i = rows; i < affine.size() && isLast; ++i)
      {
        isLast = affine[i] == (i + 1 == affine.size() ? 1 : 0);
      }
      if (affine.size() != rows && !isLast)
      {
        throw ParameterError("Affine",
                             std::to_string(affine.size()) + " numbers",
                             std::to_string(n) + " rows of " + std::to_string(n + 1) +
                               ", of the matrix with the translation behind it, or these and a row of 0 ... 0 1");
      }
    }
    return affine;
  }

  /** Points of the output go to space, by the transform to other ones, and from there to the image. */
  void
  Map(const CheckedParameters & p)
  {
    const std::vector<double> affine = this->ReadAffine(p);
    const auto at = [this](int row, int column) { return static_cast<std::size_t>(row * (n + 1) + column); };
    // Columns: what a voxel along each axis adds, then the point of voxel 0.
    std::vector<double> points(static_cast<std::size_t>(n * (n + 1)), 0.0);
    for (int i = 0; i < n; ++i)
    {
      double shift = affine[at(i, n)] - from.origin[static_cast<std::size_t>(i)];
      for (int k = 0; k < n; ++k)
      {
        shift += affine[at(i, k)] * to.origin[static_cast<std::size_t>(k)];
        for (int j = 0; j < n; ++j)
        {
          points[at(i, j)] += affine[at(i, k)] * to.Direction(k, j) * to.spacing[static_cast<std::size_t>(j)];
        }
      }
      points[at(i, n)] = shift;
    }
    Solve(from, points, n + 1);
    matrix.assign(static_cast<std::size_t>(n * n), 0.0);
    offset.assign(static_cast<std::size_t>(n), 0.0);
    for (int i = 0; i < n; ++i)
    {
      double reach = 1;
      for (int k = 0; k < n; ++k)
      {
        matrix[static_cast<std::size_t>(i * n + k)] = Snap(points[at(i, k)], 1);
        reach = std::max(
          reach, std::abs(from.origin[static_cast<std::size_t>(k)] / from.spacing[static_cast<std::size_t>(i)]));
      }
      offset[static_cast<std::size_t>(i)] = Snap(points[at(i, n)], reach);
    }
  }
};

FilterImage
FindResampleOutput(const CheckedParameters & p, const FilterImage & image)
{
  return ResampleGrid(p, image).output;
}

template <typename TEnum>
TEnum
NumberOfChoice(const FilterDescription & row, const CheckedParameters & p, const std::string & name)
{
  const std::vector<std::string> & choices = row.FindParameter(name)->choices;
  return static_cast<TEnum>(std::find(choices.begin(), choices.end(), p.Choice(name)) - choices.begin());
}

std::shared_ptr<const Operation>
MakeResample(const CheckedParameters & p, const FilterImage & image)
{
  const ResampleGrid grid(p, image);
  if (Box::FromExtent(image.extent).IsEmpty() && !Box::FromExtent(grid.output.extent).IsEmpty())
  {
    throw ParameterError("the image has no voxels, so an output of " + ToString(grid.output.extent) +
                         " voxels has no values");
  }
  const auto operation = std::make_shared<ResampleOperation>();
  operation->image = image.extent;
  operation->output = grid.output.extent;
  // The first axis, then the others: those of the grid, and others that fill three places.
  std::vector<int> places{ 0 };
  for (const int a : grid.axes)
  {
    if (a != 0)
    {
      places.push_back(a);
    }
  }
  for (int a = 1; places.size() < ResampleOperation::Axes; ++a)
  {
    if (std::find(places.begin(), places.end(), a) == places.end())
    {
      places.push_back(a);
    }
  }
  if (places.size() > ResampleOperation::Axes)
  {
    throw ParameterError("SpatialAxes", std::to_string(grid.n) + " axes", "at most two beside axis 0");
  }
  for (int i = 0; i < ResampleOperation::Axes; ++i)
  {
    operation->axes[i] = places[static_cast<std::size_t>(i)];
    const auto row = std::find(grid.axes.begin(), grid.axes.end(), operation->axes[i]);
    for (int o = 0; o < ResampleOperation::Axes && row != grid.axes.end(); ++o)
    {
      const auto column = std::find(grid.axes.begin(), grid.axes.end(), places[static_cast<std::size_t>(o)]);
      operation->matrix[i][o] =
        column == grid.axes.end()
          ? 0
          : grid.matrix[static_cast<std::size_t>((row - grid.axes.begin()) * grid.n + (column - grid.axes.begin()))];
    }
    operation->areThere[i] = row != grid.axes.end();
    if (operation->areThere[i])
    {
      operation->offset[i] = grid.offset[static_cast<std::size_t>(row - grid.axes.begin())];
    }
  }
  const FilterDescription & row = GetFilter("resample");
  operation->interpolation = NumberOfChoice<Interpolation>(row, p, "Interpolation");
  operation->outside = NumberOfChoice<ResampleOutside>(row, p, "Outside");
  operation->value = p.Value("OutsideValue");
  operation->antialias = p.Flag("Antialias");
  operation->prefilter = p.Flag("Prefilter");
  if (p.Has("Displacements"))
  {
    operation->field = grid.MakeField(p, operation->axes);
  }
  else if (p.Has("DisplacementGrid"))
  {
    throw ParameterError("DisplacementGrid", "given", "given with Displacements", ": it must be ");
  }
  return operation;
}

/** Lengths or factors along the spatial axes. */
ParameterDescription
LengthsOfAxes(const std::string & name, const std::string & option, const std::string & help)
{
  ParameterDescription lengths = MakeParameter(name, option, ParameterType::Reals, help);
  lengths.minimum = 0;
  lengths.aboveMinimum = true;
  return lengths;
}

/** Any number of numbers, which a file may hold. */
ParameterDescription
ListOfReals(const std::string & name, const std::string & option, const std::string & help,
            ParameterFile file = ParameterFile::None)
{
  ParameterDescription reals = MakeParameter(name, option, ParameterType::Reals, help);
  reals.count = ParameterCount::Any;
  reals.file = file;
  return reals;
}

std::vector<ParameterDescription>
OutputGridParameters()
{
  ParameterDescription size = MakeParameter(
    "Size", "size", ParameterType::Integers, "Voxels along each axis; without a spacing the image keeps its edges");
  size.minimum = 1;
  ParameterDescription scale = LengthsOfAxes("Scale", "scale", "Times as many voxels; the image keeps its edges");
  scale.exampleText = "2";
  return { LengthsOfAxes("OutputSpacing", "spacing", "Distance of voxels; the image keeps its edges"),
           size,
           scale,
           ListOfReals("OutputOrigin", "origin", "Position of the output's first voxel"),
           ListOfReals("OutputDirection",
                       "direction",
                       "Directions of the output's axes: the columns of a matrix, which is given by rows") };
}

/** From points of the output to points of the image. */
std::vector<ParameterDescription>
TransformParameters()
{
  ParameterDescription displacements = MakeParameter(
    "Displacements",
    "displacements",
    ParameterType::Kernel,
    "A displacement field: an image of vectors, in physical units, which are added to the points of the output before "
    "the affine transform");
  displacements.isVector = true;
  return {
    ListOfReals("Affine",
                "affine",
                "From points of the output to points of the image, in physical units: rows of the matrix, each with "
                "its number of the translation behind it, or a text file of these",
                ParameterFile::Numbers),
    displacements,
    ListOfReals("DisplacementGrid",
                "displacement-grid",
                "The grid of the displacement field, as that of the reference; in a program the field's file has it, "
                "without it the output's is taken",
                ParameterFile::Grid),
    MakeParameter("DisplacementsArePoints",
                  "",
                  ParameterType::Flag,
                  "The vectors are points themselves, not distances from the output's",
                  "off"),
    ListOfReals(
      "Reference",
      "reference",
      "The image whose grid the output has: a file, or the numbers of its size, spacing, origin and direction",
      ParameterFile::Grid)
  };
}

/** How points between voxels, and beyond the image, get a value. */
std::vector<ParameterDescription>
InterpolationParameters()
{
  const ParameterDescription interpolation = MakeChoice("Interpolation",
                                                        "interpolation",
                                                        "How points between voxels get a value",
                                                        { "nearest", "linear", "cubic", "lanczos", "label" },
                                                        "linear");
  const ParameterDescription outside =
    MakeChoice("Outside",
               "outside",
               "Points beyond the image: like the image's nearest edge, a value, or as scipy.ndimage continues arrays",
               { "renormalized", "value", "constant", "grid-constant", "nearest", "mirror", "reflect", "grid-wrap" });
  const ParameterDescription value =
    MakeParameter("OutsideValue", "value", ParameterType::PixelValue, "The value of points beyond the image", "0");
  const ParameterDescription prefilter = MakeParameter(
    "Prefilter", "no-prefilter", ParameterType::Flag, "Voxels are coefficients of cubic splines, not values", "on");
  return { interpolation,
           outside,
           OnlyWith(value, outside.name, "value|constant|grid-constant"),
           MakeParameter("Antialias",
                         "no-antialias",
                         ParameterType::Flag,
                         "Kernels do not grow with the voxels of an output that is coarser",
                         "on"),
           OnlyWith(prefilter, interpolation.name, "cubic") };
}

} // namespace

void
AddResampleFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription row;
  row.name = "resample";
  row.group = "Other grids";
  row.title = "The image on another grid: another spacing or size, an affine transform, or the grid of another image";
  row.canBeStage = false;
  row.outputImage = FindResampleOutput;
  row.make = MakeResample;
  row.parameters = Join(Join(OutputGridParameters(), TransformParameters()), InterpolationParameters());
  row.parameters.push_back(SpatialAxesParameter());
  filters.push_back(row);
}

} // namespace chunkwise
