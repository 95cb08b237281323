/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSharedTurns_h
#define chunkwiseSharedTurns_h

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace chunkwise
{

class DeviceState;

/** One turn of each device for several threads, so that copies to a device, copies from it and runs over images there
 * go on at once. For the manager's copies, allocations and runs over images of devices: the threads of
 * other runs take turns themselves and would wait for ever. */
class SharedTurns
{
public:
  SharedTurns() = default;
  ~SharedTurns();
  SharedTurns(const SharedTurns &) = delete;
  SharedTurns &
  operator=(const SharedTurns &) = delete;

  /** While it lives, the calling thread's calls of the manager share the turns. */
  class Member
  {
  public:
    explicit Member(SharedTurns & turns)
      : m_Before(std::exchange(Current(), &turns))
    {}
    ~Member() { Current() = m_Before; }
    Member(const Member &) = delete;
    Member &
    operator=(const Member &) = delete;

  private:
    SharedTurns * const m_Before;
  };

  /** The turns that the calling thread's calls share; nullptr: each takes its own. */
  static SharedTurns *
  Get()
  {
    return Current();
  }
  /** The device's turn is that of all these threads from now on; false if `stop` became true first. */
  bool
  Take(DeviceState & state, const std::function<bool()> & stop);

private:
  static SharedTurns *&
  Current();

  std::mutex                 m_Mutex;
  std::vector<DeviceState *> m_Taken;
};

} // namespace chunkwise

#endif
