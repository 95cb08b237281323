/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOnnxFormat.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace chunkwise
{
namespace onnx
{
namespace
{

/** Thrown if bytes are not the encoding of a message. */
struct MalformedMessage
{};

/** The fields of an encoded message, one after the other. A field of the format with an encoding that its type does not
 * have is skipped, as fields that the format does not have are. */
class FieldReader
{
public:
  explicit FieldReader(std::string_view bytes)
    : m_Rest(bytes)
  {}

  /** Goes to the next field; false at the end. */
  bool
  Next()
  {
    if (m_Rest.empty())
    {
      return false;
    }
    const std::uint64_t tag = TakeVarint(m_Rest);
    m_Number = tag >> 3;
    m_Encoding = static_cast<Encoding>(tag & 7);
    if (m_Number == 0 || tag > std::numeric_limits<std::uint32_t>::max())
    {
      throw MalformedMessage();
    }
    switch (m_Encoding)
    {
      case Encoding::Varint:
        m_Integer = TakeVarint(m_Rest);
        return true;
      case Encoding::Fixed64:
        m_Bytes = Take(m_Rest, 8);
        return true;
      case Encoding::Bytes:
        m_Bytes = Take(m_Rest, TakeVarint(m_Rest));
        return true;
      case Encoding::Fixed32:
        m_Bytes = Take(m_Rest, 4);
        return true;
      default:
        // Groups, which ONNX has never had.
        throw MalformedMessage();
    }
  }

  std::uint64_t
  GetNumber() const
  {
    return m_Number;
  }

  // Each of these takes the field into its place in the message.

  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  void
  Into(T & value) const
  {
    if (m_Encoding == EncodingOf<T>())
    {
      value = this->GetNumberAs<T>();
    }
  }
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  void
  Into(std::optional<T> & value) const
  {
    if (m_Encoding == EncodingOf<T>())
    {
      value = this->GetNumberAs<T>();
    }
  }
  void
  Into(std::string & text) const
  {
    if (this->HasBytes())
    {
      text = m_Bytes;
    }
  }
  void
  Into(std::optional<std::string_view> & bytes) const
  {
    if (this->HasBytes())
    {
      bytes = m_Bytes;
    }
  }
  void
  Into(std::vector<std::string> & texts) const
  {
    if (this->HasBytes())
    {
      texts.emplace_back(m_Bytes);
    }
  }
  /** Repeated numbers, one in each field or all of them in one. */
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  void
  Into(std::vector<T> & values) const
  {
    if (m_Encoding == EncodingOf<T>())
    {
      values.push_back(this->GetNumberAs<T>());
    }
    else if (this->HasBytes())
    {
      AppendPacked(m_Bytes, values);
    }
  }
  bool
  HasBytes() const
  {
    return m_Encoding == Encoding::Bytes;
  }
  std::string_view
  GetBytes() const
  {
    return m_Bytes;
  }

private:
  enum class Encoding : unsigned
  {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5
  };

  template <typename T>
  static constexpr Encoding
  EncodingOf()
  {
    return std::is_integral<T>::value ? Encoding::Varint : sizeof(T) == 4 ? Encoding::Fixed32 : Encoding::Fixed64;
  }

  static std::string_view
  Take(std::string_view & from, std::uint64_t size)
  {
    if (size > from.size())
    {
      throw MalformedMessage();
    }
    const std::string_view taken = from.substr(0, size);
    from.remove_prefix(size);
    return taken;
  }

  /** Seven bits a byte, the lowest first; the highest bit of all bytes but the last one is set. */
  static std::uint64_t
  TakeVarint(std::string_view & from)
  {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7)
    {
      const auto byte = static_cast<unsigned char>(Take(from, 1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
      {
        return value;
      }
    }
    throw MalformedMessage();
  }

  template <typename T>
  static T
  FromLittleEndian(const char * bytes)
  {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
    {
      bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    }
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> same = 0;
    same = static_cast<decltype(same)>(bits);
    T value;
    std::memcpy(&value, &same, sizeof(value));
    return value;
  }

  template <typename T>
  T
  GetNumberAs() const
  {
    if constexpr (std::is_integral<T>::value)
    {
      return static_cast<T>(m_Integer);
    }
    else
    {
      return FromLittleEndian<T>(m_Bytes.data());
    }
  }

  template <typename T>
  static void
  AppendPacked(std::string_view bytes, std::vector<T> & values)
  {
    if constexpr (std::is_integral<T>::value)
    {
      while (!bytes.empty())
      {
        values.push_back(static_cast<T>(TakeVarint(bytes)));
      }
    }
    else
    {
      if (bytes.size() % sizeof(T) != 0)
      {
        throw MalformedMessage();
      }
      values.reserve(values.size() + bytes.size() / sizeof(T));
      for (std::size_t at = 0; at < bytes.size(); at += sizeof(T))
      {
        values.push_back(FromLittleEndian<T>(bytes.data() + at));
      }
    }
  }

  std::string_view m_Rest;
  std::uint64_t    m_Number{ 0 };
  Encoding         m_Encoding{ Encoding::Varint };
  std::uint64_t    m_Integer{ 0 };
  std::string_view m_Bytes;
};

/** Reads a message into one that may have fields already, as the encoding says of a message in several parts. */
template <typename TMessage>
void
ReadMessage(std::string_view bytes, TMessage & message)
{
  FieldReader fields(bytes);
  while (fields.Next())
  {
    ReadField(fields, message);
  }
}

template <typename TMessage>
void
ReadInto(const FieldReader & field, TMessage & message)
{
  if (field.HasBytes())
  {
    ReadMessage(field.GetBytes(), message);
  }
}

template <typename TMessage>
void
ReadInto(const FieldReader & field, std::optional<TMessage> & message)
{
  if (field.HasBytes())
  {
    ReadMessage(field.GetBytes(), message ? *message : message.emplace());
  }
}

template <typename TMessage>
void
ReadInto(const FieldReader & field, std::vector<TMessage> & messages)
{
  if (field.HasBytes())
  {
    ReadMessage(field.GetBytes(), messages.emplace_back());
  }
}

// The numbers of the fields are those of onnx.proto.

void
ReadField(const FieldReader & field, StringStringEntryProto & entry)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(entry.key);
    case 2:
      return field.Into(entry.value);
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, TensorProto & tensor)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(tensor.dims);
    case 2:
      return field.Into(tensor.dataType);
    case 4:
      return field.Into(tensor.floatData);
    case 5:
      return field.Into(tensor.int32Data);
    case 7:
      return field.Into(tensor.int64Data);
    case 8:
      return field.Into(tensor.name);
    case 9:
      return field.Into(tensor.rawData);
    case 10:
      return field.Into(tensor.doubleData);
    case 13:
      return ReadInto(field, tensor.externalData);
    case 14:
      return field.Into(tensor.dataLocation);
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, AttributeProto & attribute)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(attribute.name);
    case 2:
      return field.Into(attribute.f);
    case 3:
      return field.Into(attribute.i);
    case 4:
      return field.Into(attribute.s);
    case 5:
      return ReadInto(field, attribute.t);
    case 7:
      return field.Into(attribute.floats);
    case 8:
      return field.Into(attribute.ints);
    case 20:
      return field.Into(attribute.type);
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, NodeProto & node)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(node.input);
    case 2:
      return field.Into(node.output);
    case 3:
      return field.Into(node.name);
    case 4:
      return field.Into(node.opType);
    case 5:
      return ReadInto(field, node.attribute);
    case 7:
      return field.Into(node.domain);
    default:
      return;
  }
}

/** A dimension: field 1 is a size, field 2 a name, and the last of them counts. */
void
ReadField(const FieldReader & field, std::optional<std::int64_t> & dimension)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(dimension);
    case 2:
      return field.HasBytes() ? dimension.reset() : void();
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, TensorShapeProto & shape)
{
  if (field.GetNumber() == 1 && field.HasBytes())
  {
    ReadMessage(field.GetBytes(), shape.dim.emplace_back());
  }
}

void
ReadField(const FieldReader & field, TensorTypeProto & type)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(type.elemType);
    case 2:
      return ReadInto(field, type.shape);
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, TypeProto & type)
{
  if (field.GetNumber() == 1)
  {
    ReadInto(field, type.tensorType);
  }
}

void
ReadField(const FieldReader & field, ValueInfoProto & value)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(value.name);
    case 2:
      return ReadInto(field, value.type);
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, GraphProto & graph)
{
  switch (field.GetNumber())
  {
    case 1:
      return ReadInto(field, graph.node);
    case 5:
      return ReadInto(field, graph.initializer);
    case 11:
      return ReadInto(field, graph.input);
    case 12:
      return ReadInto(field, graph.output);
    case 15:
      graph.sparseInitializers += field.HasBytes() ? 1 : 0;
      return;
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, OperatorSetIdProto & set)
{
  switch (field.GetNumber())
  {
    case 1:
      return field.Into(set.domain);
    case 2:
      return field.Into(set.version);
    default:
      return;
  }
}

void
ReadField(const FieldReader & field, ModelProto & model)
{
  switch (field.GetNumber())
  {
    case 7:
      return ReadInto(field, model.graph);
    case 8:
      return ReadInto(field, model.opsetImport);
    default:
      return;
  }
}

template <typename TMessage>
bool
ParseBytes(std::string_view bytes, TMessage & message)
{
  try
  {
    ReadMessage(bytes, message);
  }
  catch (const MalformedMessage &)
  {
    return false;
  }
  return true;
}

} // namespace

bool
ParseModel(std::string_view bytes, ModelProto & model)
{
  return ParseBytes(bytes, model);
}

bool
ParseTensor(std::string_view bytes, TensorProto & tensor)
{
  return ParseBytes(bytes, tensor);
}

} // namespace onnx
} // namespace chunkwise
