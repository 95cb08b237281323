/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileNifti.h"

#include "fileByteCount.h"
#include "fileFormats.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace chunkwise::files
{

namespace
{

constexpr std::size_t Bytes1 = 348;
constexpr std::size_t Bytes2 = 540;

/** The fields of a header of either version, as numbers. */
struct Fields
{
  int          datatype{ 0 };
  std::int64_t dim[8]{};
  double       pixdim[8]{};
  double       offset{ 0 };
  double       slope{ 0 };
  double       intercept{ 0 };
  std::string  description;
  std::string  auxiliary;
  std::string  intentName;
  NiftiFields  kept;
};

/** The places and the types of the fields in a header of the first version. */
struct Layout1
{
  using Integer = std::int16_t;
  using Code = std::int16_t;
  using SmallCode = std::uint8_t;
  using Real = float;
  using Offset = float;

  static constexpr int         version = 1;
  static constexpr std::size_t bytes = Bytes1;
  static constexpr std::size_t dimInfo = 39;
  static constexpr std::size_t dim = 40;
  static constexpr std::size_t intent = 56;
  static constexpr std::size_t intentCode = 68;
  static constexpr std::size_t datatype = 70;
  static constexpr std::size_t bits = 72;
  static constexpr std::size_t sliceStart = 74;
  static constexpr std::size_t pixdim = 76;
  static constexpr std::size_t offset = 108;
  static constexpr std::size_t slope = 112;
  static constexpr std::size_t intercept = 116;
  static constexpr std::size_t sliceEnd = 120;
  static constexpr std::size_t sliceCode = 122;
  static constexpr std::size_t units = 123;
  static constexpr std::size_t sliceDuration = 132;
  static constexpr std::size_t toffset = 136;
  static constexpr std::size_t description = 148;
  static constexpr std::size_t auxiliary = 228;
  static constexpr std::size_t qformCode = 252;
  static constexpr std::size_t sformCode = 254;
  static constexpr std::size_t qform = 256;
  static constexpr std::size_t srow = 280;
  static constexpr std::size_t intentName = 328;
  static constexpr std::size_t magic = 344;
};

/** The same of the second version. */
struct Layout2
{
  using Integer = std::int64_t;
  using Code = std::int32_t;
  using SmallCode = std::int32_t;
  using Real = double;
  using Offset = std::int64_t;

  static constexpr int         version = 2;
  static constexpr std::size_t bytes = Bytes2;
  static constexpr std::size_t magic = 4;
  static constexpr std::size_t datatype = 12;
  static constexpr std::size_t bits = 14;
  static constexpr std::size_t dim = 16;
  static constexpr std::size_t intent = 80;
  static constexpr std::size_t pixdim = 104;
  static constexpr std::size_t offset = 168;
  static constexpr std::size_t slope = 176;
  static constexpr std::size_t intercept = 184;
  static constexpr std::size_t sliceDuration = 208;
  static constexpr std::size_t toffset = 216;
  static constexpr std::size_t sliceStart = 224;
  static constexpr std::size_t sliceEnd = 232;
  static constexpr std::size_t description = 240;
  static constexpr std::size_t auxiliary = 320;
  static constexpr std::size_t qformCode = 344;
  static constexpr std::size_t sformCode = 348;
  static constexpr std::size_t qform = 352;
  static constexpr std::size_t srow = 400;
  static constexpr std::size_t sliceCode = 496;
  static constexpr std::size_t units = 500;
  static constexpr std::size_t intentCode = 504;
  static constexpr std::size_t intentName = 508;
  static constexpr std::size_t dimInfo = 524;
};

/** Calls io.Number<type in the file>(place, number) and io.Text(place, bytes, text) for each field. */
template <typename TLayout, typename TIo, typename TFields>
void
VisitFields(TIo & io, TFields & f)
{
  using L = TLayout;
  using Integer = typename L::Integer;
  using Code = typename L::Code;
  using Real = typename L::Real;
  const auto reals = [&io](std::size_t at, auto * numbers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
    {
      io.template Number<Real>(at + i * sizeof(Real), numbers[i]);
    }
  };
  io.template Number<std::int16_t>(L::datatype, f.datatype);
  for (std::size_t i = 0; i < 8; ++i)
  {
    io.template Number<Integer>(L::dim + i * sizeof(Integer), f.dim[i]);
  }
  reals(L::pixdim, f.pixdim, 8);
  io.template Number<typename L::Offset>(L::offset, f.offset);
  io.template Number<Real>(L::slope, f.slope);
  io.template Number<Real>(L::intercept, f.intercept);
  io.Text(L::description, 80, f.description);
  io.Text(L::auxiliary, 24, f.auxiliary);
  io.Text(L::intentName, 16, f.intentName);
  auto & k = f.kept;
  io.template Number<std::uint8_t>(L::dimInfo, k.dimInfo);
  io.template Number<Code>(L::intentCode, k.intentCode);
  io.template Number<Integer>(L::sliceStart, k.sliceStart);
  io.template Number<Integer>(L::sliceEnd, k.sliceEnd);
  io.template Number<typename L::SmallCode>(L::sliceCode, k.sliceCode);
  io.template Number<typename L::SmallCode>(L::units, k.units);
  io.template Number<Real>(L::sliceDuration, k.sliceDuration);
  io.template Number<Real>(L::toffset, k.toffset);
  io.template Number<Code>(L::qformCode, k.qformCode);
  io.template Number<Code>(L::sformCode, k.sformCode);
  reals(L::qform, k.qform, 6);
  for (std::size_t row = 0; row < 3; ++row)
  {
    reals(L::srow + row * 4 * sizeof(Real), k.srow[row], 4);
  }
  reals(L::intent, k.intent, 3);
}

/** Gets values from where a header has them. */
class FieldReader
{
public:
  FieldReader(const char * bytes, bool swaps)
    : m_Bytes(bytes)
    , m_Swaps(swaps)
  {}
  template <typename T, typename TNumber>
  void
  Number(std::size_t at, TNumber & number) const
  {
    T value{};
    std::memcpy(&value, m_Bytes + at, sizeof(T));
    if (m_Swaps)
    {
      SwapBytes(&value, &value, 1, sizeof(T));
    }
    number = static_cast<TNumber>(value);
  }
  void
  Text(std::size_t at, std::size_t size, std::string & text) const
  {
    text.assign(m_Bytes + at, size);
    text = Trim(text.substr(0, text.find('\0')));
  }

private:
  const char * m_Bytes;
  bool         m_Swaps;
};

template <typename TLayout>
Fields
ReadFields(const char * bytes, bool swaps)
{
  const FieldReader reader(bytes, swaps);
  Fields            f;
  VisitFields<TLayout>(reader, f);
  f.kept.version = TLayout::version;
  f.kept.qfac = f.pixdim[0] < 0 ? -1 : 1;
  std::copy_n(f.pixdim, 8, f.kept.pixdim);
  return f;
}

constexpr struct
{
  int       code;
  PixelType kind;
} Types[] = { { 2, PixelType::UInt8 },     { 256, PixelType::Int8 },   { 512, PixelType::UInt16 },
              { 4, PixelType::Int16 },     { 768, PixelType::UInt32 }, { 8, PixelType::Int32 },
              { 1280, PixelType::UInt64 }, { 1024, PixelType::Int64 }, { 16, PixelType::Float32 },
              { 64, PixelType::Float64 } };

constexpr int Rgb = 128;
constexpr int Rgba = 2304;

/** Whether a datatype is a color of uint8. */
bool
IsColor(int code)
{
  return code == Rgb || code == Rgba;
}

PixelType
KindOfType(const std::string & file, int code)
{
  for (const auto & type : Types)
  {
    if (type.code == code)
    {
      return type.kind;
    }
  }
  Fail(file,
       code == 32 || code == 1792 || code == 2048
         ? std::string("has complex voxels, which cannot be used")
         : "has voxels of NIfTI's type " + std::to_string(code) + ", which cannot be used");
}

/** The matrix of a unit quaternion by its last three numbers. */
void
RotationOf(const double * quaternion, double qfac, double rotation[3][3])
{
  const double b = quaternion[0];
  const double c = quaternion[1];
  const double d = quaternion[2];
  double       a = 1 - (b * b + c * c + d * d);
  double       scale = 1;
  if (a < 1e-7)
  {
    // Half a turn: rounding has left a little more than a unit.
    scale = 1 / std::sqrt(b * b + c * c + d * d);
    a = 0;
  }
  else
  {
    a = std::sqrt(a);
  }
  const double x = b * scale;
  const double y = c * scale;
  const double z = d * scale;
  const double matrix[3][3] = { { a * a + x * x - y * y - z * z, 2 * (x * y - a * z), 2 * (x * z + a * y) },
                                { 2 * (x * y + a * z), a * a + y * y - x * x - z * z, 2 * (y * z - a * x) },
                                { 2 * (x * z - a * y), 2 * (y * z + a * x), a * a + z * z - x * x - y * y } };
  for (int i = 0; i < 3; ++i)
  {
    for (int j = 0; j < 3; ++j)
    {
      rotation[i][j] = matrix[i][j] * (j == 2 && qfac < 0 ? -1 : 1);
    }
  }
}

/** The last three numbers of the unit quaternion of a rotation. */
void
QuaternionOf(const double r[3][3], double * quaternion)
{
  const double w = 1 + r[0][0] + r[1][1] + r[2][2];
  if (w > 0.5)
  {
    const double a = 0.5 * std::sqrt(w);
    quaternion[0] = 0.25 * (r[2][1] - r[1][2]) / a;
    quaternion[1] = 0.25 * (r[0][2] - r[2][0]) / a;
    quaternion[2] = 0.25 * (r[1][0] - r[0][1]) / a;
    return;
  }
  // The largest of the three is far from 0.
  const int    i = r[0][0] > r[1][1] ? (r[0][0] > r[2][2] ? 0 : 2) : (r[1][1] > r[2][2] ? 1 : 2);
  const int    j = (i + 1) % 3;
  const int    k = (i + 2) % 3;
  const double q = 0.5 * std::sqrt(1 + r[i][i] - r[j][j] - r[k][k]);
  const double a = 0.25 * (r[k][j] - r[j][k]) / q;
  const double sign = a < 0 ? -1 : 1;
  quaternion[i] = sign * q;
  quaternion[j] = sign * 0.25 * (r[i][j] + r[j][i]) / q;
  quaternion[k] = sign * 0.25 * (r[i][k] + r[k][i]) / q;
}

/** Columns are unit vectors at right angles. */
bool
IsOrthonormal(const double m[3][3])
{
  for (int i = 0; i < 3; ++i)
  {
    for (int j = 0; j < 3; ++j)
    {
      double sum = 0;
      for (int row = 0; row < 3; ++row)
      {
        sum += m[row][i] * m[row][j];
      }
      // Not for NaN either.
      if (!(std::abs(sum - (i == j ? 1 : 0)) <= 1e-4))
      {
        return false;
      }
    }
  }
  return true;
}

double
Determinant(const double m[3][3])
{
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

/** The unit of space in NIfTI's `units` in millimeters: 1 if the file does not say. */
double
MillimetersOf(int units)
{
  switch (units & 7)
  {
    case 1:
      return 1e3;
    case 3:
      return 1e-3;
    default:
      return 1;
  }
}

/** The unit of time in NIfTI's `units` in seconds: 1 if the file does not say, and for frequencies. */
double
SecondsOf(int units)
{
  switch (units & 56)
  {
    case 16:
      return 1e-3;
    case 24:
      return 1e-6;
    default:
      return 1;
  }
}

/** The factor that turns a step along an axis into millimeters, or seconds. */
double
ScaleOfAxis(int units, int axis)
{
  return axis < 3 ? MillimetersOf(units) : axis == 3 ? SecondsOf(units) : 1;
}

/** The step along an axis in the file's unit. */
double
StepOf(const Fields & f, int axis)
{
  const double step = std::abs(f.pixdim[axis + 1]);
  return step > 0 && std::isfinite(step) ? step : 1;
}

/** By the rule of ITK: the matrix if it is that of a scanner or there is no other, and has right angles; else the
 * quaternion. In millimeters and seconds, whatever the file's units are. */
void
SetGeometry(const std::string & file, const Fields & f, ImageHeader & header)
{
  const NiftiFields & k = f.kept;
  double              columns[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
  double              spacing[3];
  double              offset[3] = { 0, 0, 0 };
  for (int a = 0; a < 3; ++a)
  {
    spacing[a] = StepOf(f, a);
  }
  bool   usesMatrix = false;
  double matrix[3][3] = {};
  double lengths[3] = {};
  if (k.sformCode > 0 && (k.sformCode == 1 || k.qformCode <= 0))
  {
    for (int a = 0; a < 3; ++a)
    {
      lengths[a] = std::sqrt(k.srow[0][a] * k.srow[0][a] + k.srow[1][a] * k.srow[1][a] + k.srow[2][a] * k.srow[2][a]);
      for (int row = 0; row < 3; ++row)
      {
        matrix[row][a] = lengths[a] > 0 ? k.srow[row][a] / lengths[a] : 0;
      }
    }
    // If there are two transforms, the one without shear counts; a single one may have it.
    usesMatrix = IsOrthonormal(matrix) || k.qformCode <= 0;
    if (usesMatrix && !(std::abs(Determinant(matrix)) > 1e-6))
    {
      Fail(file, "the directions of its sform do not span space");
    }
  }
  if (usesMatrix)
  {
    std::memcpy(columns, matrix, sizeof(columns));
    for (int a = 0; a < 3; ++a)
    {
      // The step is what the length was computed from, unless the two contradict each other.
      const bool isRounded = std::abs(spacing[a] - lengths[a]) <= 1e-5 * lengths[a];
      spacing[a] = isRounded ? spacing[a] : lengths[a];
      offset[a] = k.srow[a][3];
    }
  }
  else if (k.qformCode > 0)
  {
    RotationOf(k.qform, k.qfac, columns);
    if (!IsOrthonormal(columns))
    {
      Fail(file, "the quaternion of its qform is no rotation");
    }
    std::copy(k.qform + 3, k.qform + 6, offset);
  }
  // From RAS to LPS. A file without a transform lies as it is stored, as ITK has it.
  const bool hasTransform = usesMatrix || k.qformCode > 0;
  const int  n = std::min(header.dimension, 3);
  for (int row = 0; row < n; ++row)
  {
    const double sign = row < 2 && hasTransform ? -1 : 1;
    header.spacing[row] = spacing[row] * MillimetersOf(k.units);
    header.origin[row] = sign * offset[row] * MillimetersOf(k.units);
    for (int a = 0; a < n; ++a)
    {
      header.direction[row][a] = sign * columns[row][a];
    }
  }
  for (int a = 3; a < header.dimension; ++a)
  {
    header.spacing[a] = StepOf(f, a) * ScaleOfAxis(k.units, a);
  }
}

/** The other file of a pair: its ending is in upper case where the file's is, unless only the other case is there. */
std::string
PartnerOf(const std::string & file, const char * ending, const char * upper)
{
  const std::string stem = file.substr(0, file.size() - 4);
  const bool        isUpper = file.back() == 'R' || file.back() == 'G';
  std::error_code   error;
  const bool        isOther = !std::filesystem::exists(stem + (isUpper ? upper : ending), error) &&
                       std::filesystem::exists(stem + (isUpper ? ending : upper), error);
  return stem + (isUpper != isOther ? upper : ending);
}

/** The bytes of a header, and what they say of themselves. */
struct RawHeader
{
  char bytes[Bytes2 + 4]{};
  bool swaps{ false };
  bool isSecond{ false };
  bool isNifti{ false };    ///< else ANALYZE
  bool isDetached{ false }; ///< voxels are in a separate file

  std::size_t
  GetSize() const
  {
    return isSecond ? Bytes2 : Bytes1;
  }
};

RawHeader
ReadRawHeader(const Descriptor & descriptor, const std::string & file, bool isGzip, bool isPair)
{
  RawHeader                   raw;
  std::unique_ptr<ByteStream> stream;
  std::size_t                 present = 0;
  if (isGzip)
  {
    stream = MakeByteStream(Codec::Deflate, descriptor, 0, PixelType::UInt8, [](std::size_t) {});
    // Streams end with an error where they are too short.
    stream->Read(raw.bytes, Bytes1);
    present = Bytes1;
  }
  else
  {
    present = descriptor.ReadSome(raw.bytes, sizeof(raw.bytes), 0);
    if (present < Bytes1)
    {
      Fail(file, "ends after " + std::to_string(present) + " bytes, a header of NIfTI has " + std::to_string(Bytes1));
    }
  }
  std::int32_t size = 0;
  std::memcpy(&size, raw.bytes, sizeof(size));
  std::int32_t swapped = 0;
  SwapBytes(&swapped, &size, 1, sizeof(size));
  raw.swaps = size != static_cast<std::int32_t>(Bytes1) && size != static_cast<std::int32_t>(Bytes2);
  size = raw.swaps ? swapped : size;
  raw.isSecond = size == static_cast<std::int32_t>(Bytes2);
  if (size != static_cast<std::int32_t>(Bytes1) && !raw.isSecond)
  {
    Fail(file, "is no NIfTI file: its header says that it has " + std::to_string(size) + " bytes");
  }
  if (raw.isSecond && isGzip)
  {
    stream->Read(raw.bytes + Bytes1, Bytes2 - Bytes1);
    present = Bytes2;
  }
  if (raw.isSecond && present < Bytes2)
  {
    Fail(file, "ends after " + std::to_string(present) + " bytes, its header has " + std::to_string(Bytes2));
  }
  const std::string magic(raw.bytes + (raw.isSecond ? Layout2::magic : Layout1::magic), 3);
  raw.isNifti = magic == "n+1" || magic == "n+2" || magic == "ni1" || magic == "ni2";
  raw.isDetached = isPair && (magic[1] != '+' || !raw.isNifti);
  if (!raw.isNifti && (!isPair || raw.isSecond))
  {
    Fail(file, "is no NIfTI file: it has not the mark of one");
  }
  return raw;
}

void
CheckDimensions(const std::string & file, const Fields & f)
{
  if (f.dim[0] < 1 || f.dim[0] > 7)
  {
    Fail(file, "has " + std::to_string(f.dim[0]) + " dimensions, there may be 2 to 5");
  }
  for (std::int64_t a = 6; a <= f.dim[0]; ++a)
  {
    if (f.dim[a] > 1)
    {
      Fail(file,
           "has " + std::to_string(f.dim[a]) + " voxels along its axis " + std::to_string(a) +
             ", which cannot be used");
    }
  }
  if (f.dim[0] >= 5 && f.dim[5] > 1 && IsColor(f.datatype))
  {
    Fail(file, "has " + std::to_string(f.dim[5]) + " colors a voxel, which cannot be used");
  }
}

/** Kind, extent and geometry. */
void
FillHeader(const std::string & file, const RawHeader & raw, const Fields & f, const VoxelCoding & coding,
           ImageHeader & header)
{
  // As ITK has it.
  header.kind = coding.scales && coding.kind != PixelType::Float64 ? PixelType::Float32 : coding.kind;
  const std::int64_t ofAxis = f.dim[0] >= 5 ? std::max<std::int64_t>(1, f.dim[5]) : 1;
  header.components = f.datatype == Rgb ? 3 : f.datatype == Rgba ? 4 : ofAxis;
  if (header.components > 1 && coding.scales)
  {
    Fail(file,
         "its slope " + Shortest(f.slope) + " and intercept " + Shortest(f.intercept) + " of colors cannot be used");
  }
  header.dimension = static_cast<int>(std::min<std::int64_t>(f.dim[0], MaxDimension));
  // The fifth axis is that of components: those before it that have one voxel are only there for its sake.
  for (header.dimension = ofAxis > 1 ? 4 : header.dimension;
       ofAxis > 1 && header.dimension > 2 && f.dim[header.dimension] == 1;
       --header.dimension)
  {
  }
  if (header.dimension < 2)
  {
    Fail(file, "has 1 dimension, there may be 2 to 5");
  }
  header.extent = Coordinates::Filled(1);
  for (int a = 0; a < header.dimension; ++a)
  {
    header.extent[a] = f.dim[a + 1];
  }
  CountVoxels(file, header);
  if (raw.isNifti)
  {
    SetGeometry(file, f, header);
    return;
  }
  // ANALYZE says nothing of a place, and ITK does not use what it says of the orientation.
  for (int a = 0; a < header.dimension; ++a)
  {
    header.spacing[a] = StepOf(f, a);
  }
}

void
SetTexts(const Fields & f, ImageHeader & header)
{
  for (const auto & [key, text] : { std::pair<const char *, std::string>{ "descrip", f.description },
                                    { "aux_file", f.auxiliary },
                                    { "intent_name", f.intentName } })
  {
    if (!text.empty())
    {
      header.metadata[key] = text;
    }
  }
}

/** In which file the voxels are, and from which byte on. */
void
PlaceVoxels(const std::string & name, const std::string & file, const RawHeader & raw, const Fields & f,
            VoxelPlace & place)
{
  place.files.emplace_back(file);
  place.data = file;
  if (f.offset < 0 || !(f.offset < 9e15))
  {
    Fail(file, "its voxels begin at byte " + Shortest(f.offset));
  }
  place.offset = static_cast<std::uint64_t>(f.offset);
  if (raw.isDetached)
  {
    place.data = HasEnding(name, ".img") ? name : PartnerOf(name, ".img", ".IMG");
    place.files.push_back(place.data);
  }
  else if (place.offset < raw.GetSize())
  {
    place.offset = raw.GetSize() + 4;
  }
}

/** The extensions between the header and the voxels, which begin at byte `voxels`. */
std::string
ReadExtensions(const Descriptor & descriptor, std::uint64_t header, std::uint64_t voxels)
{
  char        flag[4] = {};
  std::string extensions;
  descriptor.ReadSome(flag, 4, header);
  if (flag[0])
  {
    RequireInFile(descriptor.GetName(), ByteCount::FromUnsigned(voxels), descriptor.GetSize());
    extensions.resize(voxels - header - 4);
    descriptor.ReadAt(extensions.data(), extensions.size(), header + 4);
  }
  return extensions;
}

} // namespace

VoxelPlace
LocateNifti(const std::string & name)
{
  const bool        isPair = HasEnding(name, ".hdr") || HasEnding(name, ".img");
  const std::string file = HasEnding(name, ".img") ? PartnerOf(name, ".hdr", ".HDR") : name;
  const bool        isGzip = HasEnding(name, ".gz");
  const Descriptor  descriptor = Descriptor::OpenToRead(file);
  const RawHeader   raw = ReadRawHeader(descriptor, file, isGzip, isPair);
  Fields f = raw.isSecond ? ReadFields<Layout2>(raw.bytes, raw.swaps) : ReadFields<Layout1>(raw.bytes, raw.swaps);

  VoxelPlace place;
  place.coding.kind = IsColor(f.datatype) ? PixelType::UInt8 : KindOfType(file, f.datatype);
  place.coding.swaps = raw.swaps;
  CheckDimensions(file, f);
  // By the standard a slope of 0 says that voxels are not scaled: the intercept has no meaning then.
  const bool hasScale = raw.isNifti && f.slope != 0 && std::isfinite(f.slope);
  f.slope = hasScale ? f.slope : 1;
  f.intercept = hasScale && std::isfinite(f.intercept) ? f.intercept : 0;
  place.coding.slope = f.slope;
  place.coding.intercept = f.intercept;
  place.coding.scales = f.slope != 1 || f.intercept != 0;
  ImageHeader & header = place.header;
  FillHeader(file, raw, f, place.coding, header);
  place.isPlanar = header.components > 1 && !IsColor(f.datatype);
  SetTexts(f, header);
  PlaceVoxels(name, file, raw, f, place);
  // In bytes of this machine's order extensions can be written again.
  if (raw.isNifti && !raw.isDetached && !raw.swaps && !isGzip && place.offset > raw.GetSize() + 4 &&
      place.offset < (1u << 24))
  {
    f.kept.extensions = ReadExtensions(descriptor, raw.GetSize(), place.offset);
  }
  if (isGzip)
  {
    place.codec = Codec::Deflate;
    place.skipped = place.offset;
    place.offset = 0;
  }
  place.mayGoOn = true;
  if (raw.isNifti)
  {
    std::copy_n(header.spacing, MaxDimension, f.kept.spacing);
    std::copy_n(header.origin, MaxDimension, f.kept.origin);
    std::copy_n(&header.direction[0][0], MaxDimension * MaxDimension, &f.kept.direction[0][0]);
    header.nifti = std::make_shared<NiftiFields>(f.kept);
  }
  return place;
}

namespace
{

/** Puts values where a header has them. */
class FieldWriter
{
public:
  explicit FieldWriter(std::size_t bytes)
    : m_Bytes(bytes, '\0')
  {}
  template <typename T, typename TNumber>
  void
  Number(std::size_t at, TNumber number)
  {
    const T value = static_cast<T>(number);
    std::memcpy(&m_Bytes[at], &value, sizeof(T));
  }
  void
  Text(std::size_t at, std::size_t size, const std::string & text)
  {
    text.copy(&m_Bytes[at], size - 1);
  }
  std::string
  Take()
  {
    return std::move(m_Bytes);
  }

private:
  std::string m_Bytes;
};

template <typename TLayout>
std::string
WriteFields(Fields f, const char * magic)
{
  FieldWriter w(TLayout::bytes);
  w.Number<std::int32_t>(0, TLayout::bytes);
  if constexpr (TLayout::version == 1)
  {
    w.Number<char>(38, 'r');
  }
  else
  {
    w.Text(8, 5, "\r\n\x1a\n");
  }
  w.Text(TLayout::magic, 4, magic);
  w.Number<std::int16_t>(TLayout::bits,
                         8 * (f.datatype == Rgb    ? 3
                              : f.datatype == Rgba ? 4
                                                   : PixelSize(KindOfType(std::string(), f.datatype))));
  // Voxels are what they are.
  f.slope = 1;
  f.intercept = 0;
  VisitFields<TLayout>(w, f);
  return w.Take();
}

/** The first version has floats. */
bool
IsFloat(double number)
{
  return std::abs(number) <= std::numeric_limits<float>::max();
}

bool
HasGeometryOf(const ImageHeader & header, const NiftiFields & fields)
{
  return std::equal(header.spacing, header.spacing + MaxDimension, fields.spacing) &&
         std::equal(header.origin, header.origin + MaxDimension, fields.origin) &&
         std::equal(
           &header.direction[0][0], &header.direction[0][0] + MaxDimension * MaxDimension, &fields.direction[0][0]);
}

/** Both transforms from the header's geometry, in the file's unit. */
void
SetTransforms(const ImageHeader & header, Fields & f, std::vector<std::string> & losses)
{
  NiftiFields & k = f.kept;
  const double  unit = MillimetersOf(k.units);
  double        columns[3][3];
  const int     n = std::min(header.dimension, 3);
  for (int row = 0; row < 3; ++row)
  {
    // From LPS to RAS. A plane lies in space as ITK has it: its third axis is that of the space.
    const double sign = row < 2 ? -1 : 1;
    for (int a = 0; a < 3; ++a)
    {
      columns[row][a] = row < n && a < n ? sign * header.direction[row][a] : row == a ? 1 : 0;
      k.srow[row][a] = columns[row][a] * f.pixdim[a + 1];
    }
    k.srow[row][3] = row < n ? sign * header.origin[row] / unit : 0;
    k.qform[3 + row] = k.srow[row][3];
  }
  k.sformCode = k.sformCode > 0 ? k.sformCode : k.qformCode > 0 ? k.qformCode : 1;
  k.qfac = Determinant(columns) < 0 ? -1 : 1;
  if (IsOrthonormal(columns))
  {
    k.qformCode = k.qformCode > 0 ? k.qformCode : k.sformCode;
    for (int row = 0; row < 3; ++row)
    {
      columns[row][2] *= k.qfac;
    }
    QuaternionOf(columns, k.qform);
  }
  else
  {
    // Only the matrix can hold it.
    k.qformCode = 0;
    std::fill_n(k.qform, 6, 0.0);
  }
  for (int a = 3; a < header.dimension; ++a)
  {
    for (int b = 0; b < header.dimension; ++b)
    {
      if (header.direction[a][b] != (a == b ? 1 : 0) || header.direction[b][a] != (a == b ? 1 : 0))
      {
        losses.emplace_back("direction");
        return;
      }
    }
  }
}

/** Texts that have a field; the others are lost. */
void
KeepTexts(const ImageHeader & header, Fields & f, std::vector<std::string> & losses)
{
  const std::pair<const char *, std::size_t> texts[] = { { "descrip", 79 }, { "aux_file", 23 }, { "intent_name", 15 } };
  std::string *                              fields[] = { &f.description, &f.auxiliary, &f.intentName };
  for (const auto & [key, text] : header.metadata)
  {
    bool isKept = false;
    for (int i = 0; i < 3; ++i)
    {
      if (key == texts[i].first)
      {
        *fields[i] = text;
        isKept = text.size() <= texts[i].second;
      }
    }
    if (!isKept)
    {
      losses.push_back("the text of " + key);
    }
  }
}

} // namespace

bool
IsPlanarNifti(const ImageHeader & header)
{
  const bool isColor = header.kind == PixelType::UInt8 && (header.components == 3 || header.components == 4);
  return header.components > 1 && !isColor;
}

VoxelLayout
LayOutNifti(const ImageHeader & header, const std::string & file, const std::string & data, bool)
{
  VoxelLayout layout;
  Fields      f;
  const bool  isOwn = header.nifti && HasGeometryOf(header, *header.nifti);
  if (header.nifti)
  {
    f.kept = *header.nifti;
  }
  else
  {
    // Millimeters and, where there is time, seconds.
    f.kept.units = 2 | (header.dimension > 3 ? 8 : 0);
  }
  f.dim[0] = header.dimension;
  bool isLarge = f.kept.version == 2;
  for (int a = 0; a < 7; ++a)
  {
    f.dim[a + 1] = a < MaxDimension ? header.extent[a] : 1;
    f.pixdim[a + 1] = a < MaxDimension ? header.spacing[a] / ScaleOfAxis(f.kept.units, a) : 1;
    isLarge = isLarge || f.dim[a + 1] > 32767 || !IsFloat(f.pixdim[a + 1]);
    isLarge = isLarge || (a < 3 && !IsFloat(header.origin[a] / MillimetersOf(f.kept.units)));
  }
  // ITK reads none, so that 0 says nothing.
  if (header.dimension > 3 && header.origin[3] != 0)
  {
    f.kept.toffset = header.origin[3] / ScaleOfAxis(f.kept.units, 3);
  }
  for (const auto & type : Types)
  {
    f.datatype = type.kind == header.kind ? type.code : f.datatype;
  }
  layout.isPlanar = IsPlanarNifti(header);
  if (layout.isPlanar)
  {
    constexpr int vector = 1007;
    f.dim[0] = 5;
    f.dim[5] = header.components;
    isLarge = isLarge || header.components > 32767;
    f.kept.intentCode = vector;
  }
  else if (header.components > 1)
  {
    f.datatype = header.components == 3 ? Rgb : Rgba;
  }
  if (!isOwn)
  {
    if (header.nifti && header.nifti->qformCode > 0 && header.nifti->sformCode > 0)
    {
      layout.losses.emplace_back("a second transform of the NIfTI file");
    }
    SetTransforms(header, f, layout.losses);
  }
  else
  {
    std::copy_n(f.kept.pixdim, 8, f.pixdim);
  }
  f.pixdim[0] = f.kept.qfac;
  KeepTexts(header, f, layout.losses);
  const bool        isDetached = !data.empty();
  const std::size_t bytes = isLarge ? Bytes2 : Bytes1;
  std::string       extensions = f.kept.version == (isLarge ? 2 : 1) ? f.kept.extensions : std::string();
  if (isDetached)
  {
    extensions.clear();
  }
  if (header.nifti && extensions.size() != header.nifti->extensions.size())
  {
    layout.losses.emplace_back("extensions of the NIfTI header");
  }
  // Voxels begin at a multiple of 16 bytes.
  extensions.resize((bytes + 4 + extensions.size() + 15) / 16 * 16 - bytes - 4);
  const bool hasExtensions = header.nifti && !header.nifti->extensions.empty() && !isDetached;
  f.offset = isDetached ? 0 : static_cast<double>(bytes + 4 + extensions.size());
  const char * const magic = isLarge ? (isDetached ? "ni2" : "n+2") : (isDetached ? "ni1" : "n+1");
  layout.header = isLarge ? WriteFields<Layout2>(f, magic) : WriteFields<Layout1>(f, magic);
  layout.header += std::string(1, hasExtensions ? '\1' : '\0') + std::string(3, '\0');
  if (!isDetached)
  {
    layout.header += extensions;
  }
  layout.detached = isDetached;
  layout.codec = HasEnding(file, ".gz") ? Codec::Deflate : Codec::Raw;
  layout.compressesHeader = true;
  return layout;
}

} // namespace chunkwise::files
