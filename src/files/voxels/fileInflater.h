/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileInflater_h
#define fileInflater_h

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace chunkwise::files
{

/** Inflates streams of zlib or gzip, whichever their first bytes say, and checks their sums: by ISA-L where the library
 * was built with it, which takes a third of the time, else by zlib. */
class Inflater
{
public:
  virtual ~Inflater() = default;
  /** A new stream begins. */
  virtual void
  Restart() = 0;
  /** Inflates from [next, next + left) into `to`, as far as both go. Moves all four on. Returns false if the stream has
   * ended. Throws std::runtime_error with what is wrong with it. */
  virtual bool
  Inflate(const unsigned char *& next, std::size_t & left, unsigned char *& to, std::size_t & room) = 0;
};

std::unique_ptr<Inflater>
MakeInflater();

} // namespace chunkwise::files

#endif
