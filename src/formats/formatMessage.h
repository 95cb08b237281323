/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef formatMessage_h
#define formatMessage_h

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

// The messages between the library of files and the process ChunkwiseFormats, over one socket: a frame, then its bytes.
// Both are of one build, on one machine, so numbers are sent in the machine's byte order.
namespace chunkwise::formats
{

/** Changes whenever a message does. */
constexpr std::uint32_t Version = 1;

enum class Request : std::uint32_t
{
  Greet,      ///< the version; replies with it
  OpenHdf5,   ///< a path; replies with a header and the chunks of its voxels
  ReadHdf5,   ///< start and size along each axis; replies with voxels
  CreateHdf5, ///< a path, whether to compress, a header
  WriteHdf5,  ///< start and size along each axis, voxels
  CloseHdf5,  ///< ends what CreateHdf5 began
  FindDicom,  ///< a folder; replies with the number of series and, of a single one, its files in order
  CheckDicom, ///< a path; replies with what a walk over the file finds. Refuses one that is not complete
  OpenDicom,  ///< a path; replies with a header
  ReadDicom   ///< the path that was opened; replies with all voxels
};

enum class Reply : std::uint32_t
{
  Done,
  Refused ///< why, a line of text
};

struct RequestFrame
{
  Request       request;
  std::uint32_t seconds; ///< of computing, after which the process ends
  std::uint64_t memory;  ///< bytes that may be allocated beside what the process begins with
  std::uint64_t bytes;   ///< that follow
};

struct ReplyFrame
{
  Reply         reply;
  std::uint32_t unused;
  std::uint64_t bytes;
};

class MessageWriter
{
public:
  template <typename T>
  void
  Put(T value)
  {
    static_assert(std::is_arithmetic_v<T>);
    m_Bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  void
  PutText(const std::string & text)
  {
    this->Put<std::uint64_t>(text.size());
    m_Bytes += text;
  }
  template <typename T>
  void
  PutList(const std::vector<T> & list)
  {
    this->Put<std::uint64_t>(list.size());
    for (const T value : list)
    {
      this->Put(value);
    }
  }
  const std::string &
  Get() const
  {
    return m_Bytes;
  }

private:
  std::string m_Bytes;
};

/** Reads a message that nobody has checked: throws std::runtime_error where it ends too early. */
class MessageReader
{
public:
  explicit MessageReader(const std::string & bytes)
    : m_Bytes(bytes)
  {}
  template <typename T>
  T
  Get()
  {
    static_assert(std::is_arithmetic_v<T>);
    std::remove_const_t<T> value{};
    std::memcpy(&value, m_Bytes.data() + this->Take(sizeof(value)), sizeof(value));
    return value;
  }
  bool
  GetFlag()
  {
    return this->Get<std::uint8_t>() != 0;
  }
  std::string
  GetText()
  {
    const auto size = this->Get<std::uint64_t>();
    return m_Bytes.substr(this->Take(size), static_cast<std::size_t>(size));
  }
  template <typename T>
  std::vector<T>
  GetList()
  {
    const auto size = this->Get<std::uint64_t>();
    if (size > (m_Bytes.size() - m_At) / sizeof(T))
    {
      throw std::runtime_error("a message ends too early");
    }
    std::vector<T> list;
    for (std::uint64_t i = 0; i < size; ++i)
    {
      list.push_back(this->Get<T>());
    }
    return list;
  }
  /** All that is left. */
  const char *
  GetRest(std::size_t & bytes) const
  {
    bytes = m_Bytes.size() - m_At;
    return m_Bytes.data() + m_At;
  }

private:
  std::size_t
  Take(std::uint64_t bytes)
  {
    if (bytes > m_Bytes.size() - m_At)
    {
      throw std::runtime_error("a message ends too early");
    }
    const std::size_t at = m_At;
    m_At += static_cast<std::size_t>(bytes);
    return at;
  }

  const std::string & m_Bytes;
  std::size_t         m_At{ 0 };
};

} // namespace chunkwise::formats

#endif
