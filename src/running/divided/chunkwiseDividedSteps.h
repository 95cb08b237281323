/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDividedSteps_h
#define chunkwiseDividedSteps_h

#include "chunkwiseDividedImages.h"
#include "chunkwiseManagerState.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace chunkwise
{

class FixpointOfPart;

/** An operation over images that several devices hold together, in steps (FindSteps). */
class DividedSteps
{
public:
  using Image = DividedImages::Image;
  static constexpr double Never = std::numeric_limits<double>::infinity();

  DividedSteps(Manager & manager, ManagerState & state, std::shared_ptr<const Operation> operation,
               std::vector<PixelType> inputKinds, PixelType outputKind);

  const std::vector<std::shared_ptr<const Operation>> &
  Get() const
  {
    return m_Steps;
  }
  bool
  IsFixpoint() const
  {
    return m_Operation->GetSchedule() == Schedule::Fixpoint;
  }
  /** The seconds that computing takes; Never: a device has not the room beside `held` bytes of its images, or not all
   * kernels. `keepsInputs`: the inputs are not written to. */
  double
  EstimateSeconds(const DividedImages & images, const std::vector<std::size_t> & held, bool keepsInputs);
  /** Computes `output`, which has the planes around parts as the inputs have. */
  void
  Compute(DividedImages & images, const std::vector<Image> & inputs, Image output, bool keepsInputs, Monitor * monitor);
  /** Says in the report what was done; what was copied from and to the host is the caller's. */
  void
  Fill(const DividedImages & images, ExecutionReport & report) const;
  /** The parts as chunks. */
  Plan
  MakePlan(const DividedImages & images, double seconds) const;

private:
  PixelType
  GetInputKind(std::size_t step) const
  {
    return step == 0 ? m_InputKinds.front() : m_OutputKind;
  }
  /** Whether a step is another one than the step before it, or has other kinds. */
  bool
  IsNew(std::size_t step) const
  {
    return step < 2 || m_Steps[step] != m_Steps[step - 1];
  }
  /** Whether steps need an image beside inputs and output to go to and fro. */
  bool
  NeedsOther(bool keepsInputs) const
  {
    return !IsFixpoint() && m_Steps.size() > 1 && (keepsInputs || m_InputKinds.front() != m_OutputKind);
  }
  const Device &
  GetDevice(const DividedImages & images, std::size_t part) const
  {
    return *m_State.devices[static_cast<std::size_t>(images.GetParts()[part].device)]->device;
  }
  ChunkShape
  GetShape(const DividedImages & images, std::size_t part, std::size_t step) const;
  /** The most scratch of a step over a part; false: there is no kernel. */
  bool
  FindScratch(const DividedImages & images, std::size_t part, std::size_t & scratch) const;
  /** Whether a part's device has room for the steps, and kernels. */
  bool
  HasRoom(const DividedImages & images, std::size_t part, std::size_t held, bool keepsInputs) const;
  double
  GetSeconds(const DividedImages & images, std::size_t part) const;
  void
  TakeSteps(DividedImages & images, Image input, Image output, bool keepsInputs, Monitor * monitor);
  std::unique_ptr<FixpointOfPart>
  MakeFixpoint(const DividedImages & images, std::size_t part, const std::shared_ptr<const Operation> & operation,
               const std::vector<Image> & inputs, Image output) const;
  /** Each part by itself, then visits to parts whose neighbors have changed where they meet. */
  void
  ComeToRest(DividedImages & images, const std::vector<Image> & inputs, Image output, Monitor * monitor);
  /** A round of visits; afterwards `isVisited` says whom the next one visits. */
  void
  Visit(DividedImages & images, const std::vector<std::unique_ptr<FixpointOfPart>> & runs, Image output,
        std::vector<char> & isVisited);

  Manager &                                     m_Manager;
  ManagerState &                                m_State;
  const std::shared_ptr<const Operation>        m_Operation;
  const std::vector<PixelType>                  m_InputKinds;
  const PixelType                               m_OutputKind;
  std::vector<std::shared_ptr<const Operation>> m_Steps;
  std::mutex                                    m_Mutex;
  std::size_t                                   m_PeakDevice{ 0 };
  std::int64_t                                  m_Revisits{ 0 };
  std::int64_t                                  m_RevisitedVoxels{ 0 };
};

} // namespace chunkwise

#endif
