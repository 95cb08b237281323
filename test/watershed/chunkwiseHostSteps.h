/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostSteps_h
#define chunkwiseHostSteps_h

#include "chunkwiseKernelTrial.h"
#include "chunkwiseWatershedJoin.h"
#include "chunkwiseWatershedStepRun.h"

#include <atomic>
#include <mutex>
#include <numeric>

namespace chunkwise
{

/** Takes the steps of devices on the host: in any order, and by several threads at once. Chunks of some hundred voxels
 * are processed with 64 bits for each entry. */
class HostStepRunner
{
public:
  explicit HostStepRunner(const KernelCall &)
    : m_Random(++s_Calls)
  {}

  static bool
  IsWide(const Box & box)
  {
    return box.NumberOfVoxels() >= 400;
  }
  template <auto VStep, typename TChunk>
  void
  ForEach(TChunk & chunk, std::int64_t count)
  {
    std::int64_t factor = 1 + static_cast<std::int64_t>(m_Random()) % count;
    while (std::gcd(factor, count) != 1)
    {
      ++factor;
    }
    const std::int64_t first = static_cast<std::int64_t>(m_Random()) % count;
    const std::int64_t tasks = count > 50 && m_Random() % 4 == 0 ? 4 : 1;
    const auto         work = [&](std::int64_t task, unsigned int) {
      for (std::int64_t i = task; i < count; i += tasks)
      {
        (chunk.*VStep)((first + i * factor) % count);
      }
    };
    if (tasks == 1)
    {
      work(0, 0);
      return;
    }
    static const std::unique_ptr<Executor> executor = MakeThreadExecutor(4);
    static std::mutex                      mutex;
    const std::lock_guard<std::mutex>      lock(mutex);
    executor->ParallelFor(tasks, work);
  }
  void
  Fill(void * to, int byte, std::size_t bytes)
  {
    std::memset(to, byte, bytes);
  }
  void
  CopyOnDevice(void * to, const void * from, std::size_t bytes)
  {
    std::copy_n(static_cast<const unsigned char *>(from), bytes, static_cast<unsigned char *>(to));
  }
  void
  CopyToDevice(void * to, const void * from, std::size_t bytes)
  {
    std::copy_n(static_cast<const unsigned char *>(from), bytes, static_cast<unsigned char *>(to));
  }
  void
  CopyToHost(void * to, const void * from, std::size_t bytes)
  {
    std::copy_n(static_cast<const unsigned char *>(from), bytes, static_cast<unsigned char *>(to));
  }
  template <typename TId>
  void
  AddUp(TId * counts, std::int64_t count, void * scratch, std::size_t bytes)
  {
    std::memset(scratch, 1, bytes);
    TId before = 0;
    std::for_each(counts, counts + count, [&before](TId & each) { before += std::exchange(each, before); });
  }
  template <typename TId>
  static std::size_t
  BytesToAddUp(std::int64_t count)
  {
    return static_cast<std::size_t>(count) / 10 + 7;
  }

private:
  static inline std::atomic<std::uint32_t> s_Calls{ 0 };

  std::mt19937 m_Random;
};

/** On the CPU, by the steps of devices on the host, on a device. */
class WatershedPlaces : public testing::TestWithParam<Place>
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    if (GetParam() == Place::Cuda && !GetCudaBackend(&reason))
    {
      GTEST_SKIP() << "no CUDA device: " << reason;
    }
    if (GetParam() == Place::Fake)
    {
      m_Kernels.Register("watershed", MakeWatershedStepKernels<HostStepRunner>(nullptr));
      m_Kernels.Register("watershed join", MakeWatershedJoinKernels<HostStepRunner>());
      KernelSet identity;
      identity.compute = *GetHostKernels().Find("identity");
      m_Kernels.Register("identity", identity);
      m_Device = std::make_shared<FakeDevice>(FakeDevice::Options(), m_Kernels);
      m_Manager = std::make_unique<Manager>(std::vector<std::shared_ptr<Device>>{ m_Device });
    }
    else if (GetParam() == Place::Cpu)
    {
      m_Manager = std::make_unique<Manager>(std::vector<std::shared_ptr<Device>>());
    }
  }
  void
  TearDown() override
  {
    m_Manager.reset();
    EXPECT_TRUE(!m_Device || m_Device->CountViolations() == 0);
  }
  Manager &
  GetManager()
  {
    return m_Manager ? *m_Manager : Manager::GetGlobal();
  }
  bool
  IsOnDevice() const
  {
    return GetParam() != Place::Cpu;
  }
  void
  SetBudget(ExecutionRequest & request, std::size_t bytes) const
  {
    request.backend = IsOnDevice() ? BackendChoice::CUDA : BackendChoice::CPU;
    (IsOnDevice() ? request.budgets.device : request.budgets.host) = bytes;
  }

private:
  KernelRegistry              m_Kernels;
  std::shared_ptr<FakeDevice> m_Device;
  std::unique_ptr<Manager>    m_Manager;
};

} // namespace chunkwise

#endif
