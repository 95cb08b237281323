/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseKernelTrial.h"

#include <atomic>

using namespace chunkwise;

namespace
{

std::atomic<int> made{ 0 };
std::atomic<int> refused{ 0 };

/** Adds up a table that the device makes. */
class AddMadeOperation : public Operation
{
public:
  std::size_t bytes{ 4096 };

  std::string
  GetName() const override
  {
    return "test.add-made";
  }
  std::string
  GetKey() const override
  {
    return "test.add-made " + std::to_string(bytes);
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> &, PixelType) const override
  {}
};

void
AddMade(const KernelCall & call)
{
  const auto & operation = static_cast<const AddMadeOperation &>(*call.operation);
  const auto   get = [&] {
    return call.tables->GetMade(operation.GetKey() + " table", operation.bytes, [&](void * memory) {
      ++made;
      std::memset(memory, 3, operation.bytes);
    });
  };
  const void * const table = get();
  refused += table ? 0 : 1;
  EXPECT_EQ(get(), table);
  // The last byte: all of them must be there.
  const int value = table ? static_cast<const unsigned char *>(table)[operation.bytes - 1] : 3;
  ForEachIndex(call.output.box, [&](const Coordinates & index) {
    At<std::int32_t>(call.output, index) = At<std::int32_t>(call.inputs[0], index) + value;
  });
}

class MadeTables : public testing::Test
{
protected:
  MadeTables()
  {
    Kernel kernel;
    kernel.run = AddMade;
    m_Kernels.Register("test.add-made", { kernel });
    m_Device = std::make_shared<FakeDevice>(FakeDevice::Options(), m_Kernels);
    m_Manager = std::make_unique<Manager>(std::vector<std::shared_ptr<Device>>{ m_Device }, "", &m_Kernels);
    made = refused = 0;
  }
  ~MadeTables() override
  {
    m_Manager.reset();
    EXPECT_EQ(m_Device->CountLive(), 0);
    EXPECT_EQ(m_Device->CountViolations(), 0);
  }

  ExecutionReport
  Run(std::size_t tableBytes, std::size_t budget, BackendChoice backend = BackendChoice::CUDA)
  {
    std::mt19937 random(5);
    const auto   operation = std::make_shared<AddMadeOperation>();
    operation->bytes = tableBytes;
    Trial<std::int32_t, std::int32_t> t(random, operation, { { 40, 30, 20, 1, 1 } });
    t.request.backend = backend;
    t.request.budgets.device = budget;
    t.Prepare(t.request.image);
    const ExecutionReport report = m_Manager->Execute(t.request);
    ForEachIndex(t.request.region, [&](const Coordinates & index) {
      EXPECT_EQ(t.Result(index), At<std::int32_t>(t.image, index) + 3) << ToString(index);
    });
    return report;
  }

  KernelRegistry              m_Kernels;
  std::shared_ptr<FakeDevice> m_Device;
  std::unique_ptr<Manager>    m_Manager;
};

TEST_F(MadeTables, AreMadeOnceForChunksAndRuns)
{
  EXPECT_GT(Run(4096, 100000).plan.chunks.size(), 3u);
  EXPECT_EQ(made, 1);
  Run(4096, 100000);
  EXPECT_EQ(made, 1);
  Run(5000, 100000);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(refused, 0);
}

/** A run holds what it has made, though it is more than the device keeps between runs, and lets the others be. */
TEST_F(MadeTables, TooLargeToBeKeptAreMadeOnceARun)
{
  constexpr std::size_t large = std::size_t{ 600 } << 20;
  Run(4096, 0);
  EXPECT_EQ(made, 1);
  Run(large, 0);
  EXPECT_EQ(made, 2);
  Run(large, 0);
  EXPECT_EQ(made, 3);
  Run(4096, 0);
  EXPECT_EQ(made, 3);
  EXPECT_EQ(refused, 0);
}

TEST_F(MadeTables, AreRefusedWithoutRoomAndCostNoRetry)
{
  const ExecutionReport report = Run(90000, 100000);
  EXPECT_EQ(made, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(report.retries, 0);
  EXPECT_LE(report.peakDevice, 100000u);
}

TEST_F(MadeTables, AreRefusedWhereTheDeviceHasNoMemory)
{
  Run(4096, 100000);
  EXPECT_EQ(made, 1);
  // The buffers come first, the table last.
  const int allocations = m_Device->CountCalls("Allocate");
  m_Manager->ReleaseMemory();
  m_Device->FailAt("Allocate", allocations - 1, true, DeviceError::Kind::OutOfMemory);
  const ExecutionReport report = Run(4096, 100000);
  EXPECT_EQ(made, 1);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(report.retries, 0);
}

TEST_F(MadeTables, OfEarlierRunsDoNotShrinkChunks)
{
  const Coordinates chunk = Run(100, 100000).plan.chunkExtent;
  Run(40000, 100000);
  EXPECT_EQ(Run(100, 100000).plan.chunkExtent, chunk);
  EXPECT_EQ(refused, 0);
}

TEST_F(MadeTables, AreMadeOnceOnTheHostAndCounted)
{
  EXPECT_EQ(Run(4096, 0, BackendChoice::CPU).peakHost, 4096u);
  EXPECT_EQ(Run(4096, 0, BackendChoice::CPU).peakHost, 4096u);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(m_Manager->GetHeldMemory().host, 4096u);
  m_Manager->ReleaseMemory();
  EXPECT_EQ(m_Manager->GetHeldMemory().host, 0u);
}

TEST_F(MadeTables, OfTheHostAreRefusedBeyondItsBudgetAndGiveWay)
{
  Budgets budgets;
  budgets.host = 10000;
  m_Manager->SetBudgets(budgets);
  Run(12000, 0, BackendChoice::CPU);
  EXPECT_EQ(made, 0);
  EXPECT_EQ(refused, 1);
  Run(6000, 0, BackendChoice::CPU);
  Run(7000, 0, BackendChoice::CPU);
  EXPECT_EQ(made, 2);
  EXPECT_EQ(refused, 1);
  EXPECT_LE(m_Manager->GetHeldMemory().host, 10000u);
}

} // namespace
