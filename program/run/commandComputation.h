/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandComputation_h
#define commandComputation_h

#include "chunkwiseStatistics.h"
#include "commandLine.h"
#include "fileJob.h"

namespace command
{

/** The computation that a command line asks for: the operation, and the types of voxels. */
class Computation
{
public:
  /** Gives the job its operation. Throws ArgumentError, or ParameterError. */
  Computation(const CommandLine & line, chunkwise::files::FileJob & job);

  /** The pixel type of the file. */
  chunkwise::PixelType
  GetOutputKind() const
  {
    return m_OutputKind;
  }
  /** The parameter that is "auto"; nullptr if there is none. */
  const chunkwise::ParameterDescription *
  GetAutomatic() const
  {
    return m_Automatic;
  }
  /** Takes the parameter that is "auto" from the whole image, and gives the job the operation with it. Returns the
   * value. */
  std::vector<double>
  TakeEstimate(const chunkwise::SummaryRun & run, chunkwise::Monitor * monitor);

private:
  using PixelType = chunkwise::PixelType;
  using Pointer = std::shared_ptr<const chunkwise::Operation>;

  void
  ChooseKinds();
  PixelType
  GetConvertedKind() const;
  Pointer
  MakeStage(const Stage & stage, chunkwise::FilterImage image);
  Pointer
  Make();
  Pointer
  MakeChecked();
  void
  CheckNumberOfImages(const chunkwise::Operation & operation) const;

  const CommandLine &                              m_Line;
  chunkwise::files::FileJob &                      m_Job;
  const chunkwise::ParameterDescription *          m_Automatic{ nullptr }; ///< the parameter that is "auto"
  std::map<std::string, chunkwise::ParameterValue> m_Estimated;            ///< values that were estimated, by name
  std::optional<chunkwise::Box>                    m_OutputBox;            ///< of a result of another size than IN
  PixelType                                        m_InputKind{ PixelType::UInt8 };
  PixelType                                        m_ComputedKind{ PixelType::UInt8 };
  PixelType                                        m_OutputKind{ PixelType::UInt8 };
};

} // namespace command

#endif
