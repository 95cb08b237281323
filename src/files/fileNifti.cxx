/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileNifti.h"

#include "fileFormats.h"
#include "fileItk.h"

#include "itkNiftiImageIO.h"

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

/** Passes the fields one by one: their names are those of both standards, their types and places differ. */
class FieldReader
{
public:
  FieldReader(const char * bytes, bool swaps)
    : m_Bytes(bytes)
    , m_Swaps(swaps)
  {}
  template <typename T>
  T
  Get(std::size_t at) const
  {
    T value{};
    std::memcpy(&value, m_Bytes + at, sizeof(T));
    if (m_Swaps)
    {
      SwapBytes(&value, &value, 1, sizeof(T));
    }
    return value;
  }
  std::string
  Text(std::size_t at, std::size_t size) const
  {
    std::string text(m_Bytes + at, size);
    return Trim(text.substr(0, text.find('\0')));
  }

private:
  const char * m_Bytes;
  bool         m_Swaps;
};

Fields
ReadFields1(const FieldReader & reader)
{
  Fields f;
  f.datatype = reader.Get<std::int16_t>(70);
  for (std::size_t i = 0; i < 8; ++i)
  {
    f.dim[i] = reader.Get<std::int16_t>(40 + 2 * i);
    f.pixdim[i] = reader.Get<float>(76 + 4 * i);
  }
  f.offset = reader.Get<float>(108);
  f.slope = reader.Get<float>(112);
  f.intercept = reader.Get<float>(116);
  f.description = reader.Text(148, 80);
  f.auxiliary = reader.Text(228, 24);
  f.intentName = reader.Text(328, 16);
  NiftiFields & k = f.kept;
  k.version = 1;
  k.dimInfo = reader.Get<std::uint8_t>(39);
  k.intentCode = reader.Get<std::int16_t>(68);
  k.sliceStart = reader.Get<std::int16_t>(74);
  k.sliceEnd = reader.Get<std::int16_t>(120);
  k.sliceCode = reader.Get<std::uint8_t>(122);
  k.units = reader.Get<std::uint8_t>(123);
  k.sliceDuration = reader.Get<float>(132);
  k.toffset = reader.Get<float>(136);
  k.qformCode = reader.Get<std::int16_t>(252);
  k.sformCode = reader.Get<std::int16_t>(254);
  for (std::size_t i = 0; i < 6; ++i)
  {
    k.qform[i] = reader.Get<float>(256 + 4 * i);
  }
  for (std::size_t i = 0; i < 12; ++i)
  {
    k.srow[i / 4][i % 4] = reader.Get<float>(280 + 4 * i);
  }
  for (std::size_t i = 0; i < 3; ++i)
  {
    k.intent[i] = reader.Get<float>(56 + 4 * i);
  }
  return f;
}

Fields
ReadFields2(const FieldReader & reader)
{
  Fields f;
  f.datatype = reader.Get<std::int16_t>(12);
  for (std::size_t i = 0; i < 8; ++i)
  {
    f.dim[i] = reader.Get<std::int64_t>(16 + 8 * i);
    f.pixdim[i] = reader.Get<double>(104 + 8 * i);
  }
  f.offset = static_cast<double>(reader.Get<std::int64_t>(168));
  f.slope = reader.Get<double>(176);
  f.intercept = reader.Get<double>(184);
  f.description = reader.Text(240, 80);
  f.auxiliary = reader.Text(320, 24);
  f.intentName = reader.Text(508, 16);
  NiftiFields & k = f.kept;
  k.version = 2;
  k.dimInfo = reader.Get<std::uint8_t>(524);
  k.intentCode = reader.Get<std::int32_t>(504);
  k.sliceStart = reader.Get<std::int64_t>(224);
  k.sliceEnd = reader.Get<std::int64_t>(232);
  k.sliceCode = reader.Get<std::int32_t>(496);
  k.units = reader.Get<std::int32_t>(500);
  k.sliceDuration = reader.Get<double>(208);
  k.toffset = reader.Get<double>(216);
  k.qformCode = reader.Get<std::int32_t>(344);
  k.sformCode = reader.Get<std::int32_t>(348);
  for (std::size_t i = 0; i < 6; ++i)
  {
    k.qform[i] = reader.Get<double>(352 + 8 * i);
  }
  for (std::size_t i = 0; i < 12; ++i)
  {
    k.srow[i / 4][i % 4] = reader.Get<double>(400 + 8 * i);
  }
  for (std::size_t i = 0; i < 3; ++i)
  {
    k.intent[i] = reader.Get<double>(80 + 8 * i);
  }
  return f;
}

constexpr struct
{
  int       code;
  PixelKind kind;
} Types[] = { { 2, PixelKind::UInt8 },     { 256, PixelKind::Int8 },   { 512, PixelKind::UInt16 },
              { 4, PixelKind::Int16 },     { 768, PixelKind::UInt32 }, { 8, PixelKind::Int32 },
              { 1280, PixelKind::UInt64 }, { 1024, PixelKind::Int64 }, { 16, PixelKind::Float32 },
              { 64, PixelKind::Float64 } };

PixelKind
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
       code == 128 || code == 2304 ? std::string("has colors, only images of one component a voxel can be used")
       : code == 32 || code == 1792 || code == 2048
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
      if (std::abs(sum - (i == j ? 1 : 0)) > 1e-4)
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

/** The geometry of version 2, which not every ITK reads, by the rule of ITK for version 1: the matrix if it is that of
 * a scanner or there is no other, and has right angles; else the quaternion. */
void
SetGeometry(const Fields & f, ImageHeader & header)
{
  const NiftiFields & k = f.kept;
  double              columns[3][3] = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
  double              spacing[3];
  double              offset[3] = { 0, 0, 0 };
  for (int a = 0; a < 3; ++a)
  {
    spacing[a] = f.pixdim[a + 1] > 0 ? f.pixdim[a + 1] : 1;
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
    usesMatrix = IsOrthonormal(matrix);
    if (!usesMatrix && k.qformCode <= 0)
    {
      throw FileError("its directions are not at right angles");
    }
  }
  if (usesMatrix)
  {
    std::memcpy(columns, matrix, sizeof(columns));
    for (int a = 0; a < 3; ++a)
    {
      spacing[a] = lengths[a];
      offset[a] = k.srow[a][3];
    }
  }
  else if (k.qformCode > 0)
  {
    RotationOf(k.qform, k.qfac, columns);
    std::copy(k.qform + 3, k.qform + 6, offset);
  }
  // From RAS to LPS.
  const int n = std::min(header.dimension, 3);
  for (int row = 0; row < n; ++row)
  {
    const double sign = row < 2 ? -1 : 1;
    header.spacing[row] = spacing[row];
    header.origin[row] = sign * offset[row];
    for (int a = 0; a < n; ++a)
    {
      header.direction[row][a] = sign * columns[row][a];
    }
  }
  for (int a = 3; a < header.dimension; ++a)
  {
    header.spacing[a] = f.pixdim[a + 1] > 0 ? f.pixdim[a + 1] : 1;
  }
}

/** Header, or image with both, of the pair. */
std::string
PartnerOf(const std::string & file, const char * ending, const char * upper)
{
  const std::string stem = file.substr(0, file.size() - 4);
  std::error_code   error;
  const bool        isUpper = file.back() == 'R' || file.back() == 'G';
  return stem + (isUpper ? upper : ending);
}

} // namespace

VoxelPlace
LocateNifti(const std::string & name)
{
  const bool                  isPair = HasEnding(name, ".hdr") || HasEnding(name, ".img");
  const std::string           file = HasEnding(name, ".img") ? PartnerOf(name, ".hdr", ".HDR") : name;
  const bool                  isGzip = HasEnding(name, ".gz");
  const Descriptor            descriptor = Descriptor::OpenToRead(file);
  char                        bytes[Bytes2 + 4] = {};
  std::unique_ptr<ByteStream> stream;
  std::size_t                 present = 0;
  if (isGzip)
  {
    stream = MakeByteStream(Codec::Deflate, descriptor, 0, PixelKind::UInt8, [](std::size_t) {});
    // Streams end with an error where they are too short.
    stream->Read(bytes, Bytes1);
    present = Bytes1;
  }
  else
  {
    present = descriptor.ReadSome(bytes, sizeof(bytes), 0);
    if (present < Bytes1)
    {
      Fail(file, "ends after " + std::to_string(present) + " bytes, a header of NIfTI has " + std::to_string(Bytes1));
    }
  }
  std::int32_t size = 0;
  std::memcpy(&size, bytes, sizeof(size));
  std::int32_t swapped = 0;
  SwapBytes(&swapped, &size, 1, sizeof(size));
  const bool swaps = size != static_cast<std::int32_t>(Bytes1) && size != static_cast<std::int32_t>(Bytes2);
  size = swaps ? swapped : size;
  const bool isSecond = size == static_cast<std::int32_t>(Bytes2);
  if (size != static_cast<std::int32_t>(Bytes1) && !isSecond)
  {
    Fail(file, "is no NIfTI file: its header says that it has " + std::to_string(size) + " bytes");
  }
  if (isSecond && isGzip)
  {
    stream->Read(bytes + Bytes1, Bytes2 - Bytes1);
    present = Bytes2;
  }
  if (isSecond && present < Bytes2)
  {
    Fail(file, "ends after " + std::to_string(present) + " bytes, its header has " + std::to_string(Bytes2));
  }
  const std::string magic(bytes + (isSecond ? 4 : 344), 3);
  const bool        isNifti = magic == "n+1" || magic == "n+2" || magic == "ni1" || magic == "ni2";
  const bool        isDetached = isPair && (magic[1] != '+' || !isNifti);
  if (!isNifti && (!isPair || isSecond))
  {
    Fail(file, "is no NIfTI file: it has not the mark of one");
  }
  const FieldReader reader(bytes, swaps);
  Fields            f = isSecond ? ReadFields2(reader) : ReadFields1(reader);
  f.kept.qfac = f.pixdim[0] < 0 ? -1 : 1;
  std::copy_n(f.pixdim, 8, f.kept.pixdim);

  VoxelPlace place;
  place.coding.kind = KindOfType(file, f.datatype);
  place.coding.swaps = swaps;
  if (f.dim[0] < 1 || f.dim[0] > 7)
  {
    Fail(file, "has " + std::to_string(f.dim[0]) + " dimensions, there may be 2 to 5");
  }
  for (std::int64_t a = 5; a <= f.dim[0]; ++a)
  {
    if (f.dim[a] > 1)
    {
      Fail(file,
           "has " + std::to_string(f.dim[a]) + " components a voxel (its axis " + std::to_string(a) +
             "), only images of one can be used");
    }
  }
  // ITK knows which of the transforms counts, and what voxels become that are scaled.
  ImageHeader & header = place.header;
  f.slope = std::abs(f.slope) < std::numeric_limits<double>::epsilon() || !std::isfinite(f.slope) ? 1 : f.slope;
  f.intercept = std::isfinite(f.intercept) ? f.intercept : 0;
  place.coding.scales = isNifti && (f.slope != 1 || f.intercept != 0);
  if (isSecond)
  {
    header.kind = !place.coding.scales                      ? place.coding.kind
                  : place.coding.kind == PixelKind::Float64 ? PixelKind::Float64
                                                            : PixelKind::Float32;
  }
  else
  {
    const auto io = itk::NiftiImageIO::New();
    header = ReadHeaderWithItk(*io, file);
    header.metadata.clear();
    if (place.coding.scales != (header.kind != place.coding.kind) && !IsFloatingPoint(place.coding.kind))
    {
      Fail(file, "its slope " + Shortest(f.slope) + " and intercept " + Shortest(f.intercept) + " cannot be used");
    }
  }
  const int ofItk = header.dimension;
  header.dimension = static_cast<int>(std::min<std::int64_t>(f.dim[0], MaxDimension));
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
  if (isSecond)
  {
    try
    {
      SetGeometry(f, header);
    }
    catch (const FileError & error)
    {
      Fail(file, error.what());
    }
  }
  else
  {
    // ITK drops axes of one voxel at the end.
    for (int a = ofItk; a < header.dimension; ++a)
    {
      header.spacing[a] = f.pixdim[a + 1] > 0 ? f.pixdim[a + 1] : 1;
    }
  }
  for (const auto & [key, text] : { std::pair<const char *, std::string>{ "descrip", f.description },
                                    { "aux_file", f.auxiliary },
                                    { "intent_name", f.intentName } })
  {
    if (!text.empty())
    {
      header.metadata[key] = text;
    }
  }
  place.files.emplace_back(file);
  place.data = file;
  const std::uint64_t headerBytes = (isSecond ? Bytes2 : Bytes1) + 4;
  if (f.offset < 0 || !(f.offset < 9e15))
  {
    Fail(file, "its voxels begin at byte " + Shortest(f.offset));
  }
  place.offset = static_cast<std::uint64_t>(f.offset);
  if (isDetached)
  {
    place.data = HasEnding(name, ".img") ? name : PartnerOf(name, ".img", ".IMG");
    place.files.push_back(place.data);
  }
  else if (place.offset < headerBytes - 4)
  {
    place.offset = headerBytes;
  }
  // Extensions lie between the header and the voxels; in bytes of this machine's order they can be written again.
  if (isNifti && !isDetached && !swaps && !isGzip && place.offset > headerBytes && place.offset < (1u << 24))
  {
    char flag[4] = {};
    descriptor.ReadSome(flag, 4, headerBytes - 4);
    if (flag[0])
    {
      f.kept.extensions.resize(place.offset - headerBytes);
      descriptor.ReadAt(f.kept.extensions.data(), f.kept.extensions.size(), headerBytes);
    }
  }
  if (isGzip)
  {
    place.codec = Codec::Deflate;
    place.skipped = place.offset;
    place.offset = 0;
  }
  place.mayGoOn = true;
  place.coding.slope = f.slope;
  place.coding.intercept = f.intercept;
  if (isNifti)
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
  template <typename T>
  void
  Put(std::size_t at, T value)
  {
    std::memcpy(&m_Bytes[at], &value, sizeof(T));
  }
  void
  PutText(std::size_t at, std::size_t size, const std::string & text)
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

std::string
Write1(const Fields & f, const char * magic)
{
  FieldWriter         w(Bytes1);
  const NiftiFields & k = f.kept;
  w.Put<std::int32_t>(0, static_cast<std::int32_t>(Bytes1));
  w.Put<char>(38, 'r');
  w.Put(39, static_cast<std::uint8_t>(k.dimInfo));
  for (std::size_t i = 0; i < 8; ++i)
  {
    w.Put(40 + 2 * i, static_cast<std::int16_t>(f.dim[i]));
    w.Put(76 + 4 * i, static_cast<float>(f.pixdim[i]));
  }
  for (std::size_t i = 0; i < 3; ++i)
  {
    w.Put(56 + 4 * i, static_cast<float>(k.intent[i]));
  }
  w.Put(68, static_cast<std::int16_t>(k.intentCode));
  w.Put(70, static_cast<std::int16_t>(f.datatype));
  w.Put(72, static_cast<std::int16_t>(8 * PixelSize(KindOfType(std::string(), f.datatype))));
  w.Put(74, static_cast<std::int16_t>(k.sliceStart));
  w.Put(108, static_cast<float>(f.offset));
  w.Put(112, 1.0f);
  w.Put(120, static_cast<std::int16_t>(k.sliceEnd));
  w.Put(122, static_cast<std::uint8_t>(k.sliceCode));
  w.Put(123, static_cast<std::uint8_t>(k.units));
  w.Put(132, static_cast<float>(k.sliceDuration));
  w.Put(136, static_cast<float>(k.toffset));
  w.PutText(148, 80, f.description);
  w.PutText(228, 24, f.auxiliary);
  w.Put(252, static_cast<std::int16_t>(k.qformCode));
  w.Put(254, static_cast<std::int16_t>(k.sformCode));
  for (std::size_t i = 0; i < 6; ++i)
  {
    w.Put(256 + 4 * i, static_cast<float>(k.qform[i]));
  }
  for (std::size_t i = 0; i < 12; ++i)
  {
    w.Put(280 + 4 * i, static_cast<float>(k.srow[i / 4][i % 4]));
  }
  w.PutText(328, 16, f.intentName);
  w.PutText(344, 4, magic);
  return w.Take();
}

std::string
Write2(const Fields & f, const char * magic)
{
  FieldWriter         w(Bytes2);
  const NiftiFields & k = f.kept;
  w.Put<std::int32_t>(0, static_cast<std::int32_t>(Bytes2));
  w.PutText(4, 4, magic);
  w.PutText(8, 5, "\r\n\x1a\n");
  w.Put(12, static_cast<std::int16_t>(f.datatype));
  w.Put(14, static_cast<std::int16_t>(8 * PixelSize(KindOfType(std::string(), f.datatype))));
  for (std::size_t i = 0; i < 8; ++i)
  {
    w.Put(16 + 8 * i, f.dim[i]);
    w.Put(104 + 8 * i, f.pixdim[i]);
  }
  for (std::size_t i = 0; i < 3; ++i)
  {
    w.Put(80 + 8 * i, k.intent[i]);
  }
  w.Put(168, static_cast<std::int64_t>(f.offset));
  w.Put(176, 1.0);
  w.Put(208, k.sliceDuration);
  w.Put(216, k.toffset);
  w.Put(224, k.sliceStart);
  w.Put(232, k.sliceEnd);
  w.PutText(240, 80, f.description);
  w.PutText(320, 24, f.auxiliary);
  w.Put(344, static_cast<std::int32_t>(k.qformCode));
  w.Put(348, static_cast<std::int32_t>(k.sformCode));
  for (std::size_t i = 0; i < 6; ++i)
  {
    w.Put(352 + 8 * i, k.qform[i]);
  }
  for (std::size_t i = 0; i < 12; ++i)
  {
    w.Put(400 + 8 * i, k.srow[i / 4][i % 4]);
  }
  w.Put(496, static_cast<std::int32_t>(k.sliceCode));
  w.Put(500, static_cast<std::int32_t>(k.units));
  w.Put(504, static_cast<std::int32_t>(k.intentCode));
  w.PutText(508, 16, f.intentName);
  w.Put(524, static_cast<std::uint8_t>(k.dimInfo));
  return w.Take();
}

bool
HasGeometryOf(const ImageHeader & header, const NiftiFields & fields)
{
  return std::equal(header.spacing, header.spacing + MaxDimension, fields.spacing) &&
         std::equal(header.origin, header.origin + MaxDimension, fields.origin) &&
         std::equal(
           &header.direction[0][0], &header.direction[0][0] + MaxDimension * MaxDimension, &fields.direction[0][0]);
}

/** Both transforms from the header's geometry. */
void
SetTransforms(const ImageHeader & header, Fields & f, std::vector<std::string> & losses)
{
  NiftiFields & k = f.kept;
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
    k.srow[row][3] = row < n ? sign * header.origin[row] : 0;
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

} // namespace

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
    f.pixdim[a + 1] = a < MaxDimension ? header.spacing[a] : 1;
    isLarge = isLarge || f.dim[a + 1] > 32767;
  }
  // ITK reads none, so that 0 says nothing.
  if (header.dimension > 3 && header.origin[3] != 0)
  {
    f.kept.toffset = header.origin[3];
  }
  for (const auto & type : Types)
  {
    f.datatype = type.kind == header.kind ? type.code : f.datatype;
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
      layout.losses.push_back("the text of " + key);
    }
  }
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
  layout.header = isLarge ? Write2(f, magic) : Write1(f, magic);
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
