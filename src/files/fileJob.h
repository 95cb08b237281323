/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileJob_h
#define fileJob_h

#include "chunkwiseFilters.h"
#include "chunkwiseStreamedRun.h"
#include "fileImage.h"
#include "fileMemory.h"
#include "fileState.h"

#include <optional>
#include <string>
#include <vector>

namespace chunkwise::files
{

/** A run from files to a file that is refused. The message begins with the name of what the caller has set (JobNames).
 */
class JobError : public Error
{
public:
  using Error::Error;
};

/** How the caller's users name what they set: the words of errors and warnings. */
struct JobNames
{
  std::string input{ "IN" };
  std::string output{ "OUT" };
  std::string memory{ "--memory" };
  std::string divisions{ "--divisions" };
  std::string resume{ "--resume" };
  std::string filter; ///< of what is computed
  /** The name of a further image: "--mask". */
  std::string (*additionalInput)(const InputDescription & input){ nullptr };
  std::string (*formatBytes)(std::uint64_t bytes){ nullptr };
  /** Bytes that are enough: rounded up. */
  std::string (*formatNeed)(std::uint64_t bytes){ nullptr };
  /** Advice for results that the file's type does not hold: "; ..." */
  std::string adviceOnRange;
};

/** One run from files to a file: opens and checks the images, shares the memory, plans, runs and writes. The program
 * and itk::ChunkwiseFileToFile make their runs here, so that the same files and the same memory have the same plan.
 *
 * The order of calls is that of the class. The caller knows the filter and its pixel types. */
class FileJob
{
public:
  FileJob(JobNames names, Executor & executor);

  // Images that are read.

  /** The first image. Throws JobError if it has no voxels, or a spacing that is no length. */
  const ImageHeader &
  SetInput(const std::string & file, std::unique_ptr<FileSource> source);
  /** A further image, in the order of the filter's table. Throws JobError unless it lies where the first one does, with
   * as many voxels. */
  const ImageHeader &
  AddInput(const InputDescription & input, const std::string & file, std::unique_ptr<FileSource> source);
  const std::vector<std::shared_ptr<FileSource>> &
  GetSources() const
  {
    return m_Sources;
  }
  const ImageHeader &
  GetHeader() const
  {
    return m_Sources.front()->GetHeader();
  }
  /** The smallest type that has all values of the first image and of the further images that have no separate type.
   * Throws ParameterError. */
  PixelType
  FindInputKind() const;
  /** The types that the operation gets, in its order, if the first image is converted to `first`. */
  std::vector<PixelType>
  ListInputKinds(PixelType first) const;
  /** The image without its voxels, as filters see it. */
  FilterImage
  DescribeImage(PixelType inputKind, PixelType outputKind) const;
  /** The whole image, with the components of the result. */
  const Box &
  GetImage() const
  {
    return m_Image;
  }

  // The operation.

  std::int64_t
  GetOutputComponents() const
  {
    return m_OutputComponents;
  }
  /** For a filter whose results have another number of components than its inputs. */
  void
  SetOutputComponents(std::int64_t components);
  /** The grid of an output that has other voxels than the image. */
  void
  SetOutputImage(const FilterImage & image);
  /** "" if the operation takes as many images as there are; else a message that begins with the name of the first image
   * that is missing, or that is too much. `all`: the filter's further inputs. */
  std::string
  FindWrongNumberOfImages(const Operation & operation, const std::vector<InputDescription> & all) const;
  /** `whole`: what the result of the whole image covers; `computed`: what of it is computed; `written`: what of that.
   */
  void
  SetOperation(std::shared_ptr<const Operation> operation, PixelType inputKind, PixelType computedKind,
               const Box & whole, const Box & computed, const Box & written);
  /** The images are only read, each in its own type: see Read. */
  void
  SetReading();
  /** The same computation with other parameters, after a first pass. */
  void
  ReplaceOperation(std::shared_ptr<const Operation> operation);
  /** A pass over the whole image before the run (StreamedRequest::firstPass). */
  void
  SetFirstPass(std::function<ExecutionRequest(ExecutionRequest)> firstPass);
  /** For what callers choose: backend, devices, budgets of devices, divisions, countsLimits. */
  StreamedRequest &
  GetRequest()
  {
    return m_Request;
  }
  const StreamedRequest &
  GetRequest() const
  {
    return m_Request;
  }

  // The output.

  /** How a store of Zarr is made (ParseZarrOptions); call it before SetOutput. Nothing if the text is empty. */
  void
  SetZarrOptions(const std::string & name, const std::string & text)
  {
    m_Zarr = text.empty() ? nullptr : ParseZarrOptions(name, text);
  }
  /** The output is a store that exists and gets levels (ParseLevelOptions); call it before SetOutput. */
  void
  SetZarrLevels(const std::string & name, const std::string & text, const std::string & reducer, bool replaces)
  {
    m_Zarr = ParseLevelOptions(name, text, reducer, replaces);
  }
  /** If the run ends early, the output stays unfinished, or the state after a step of a runner that KeepsStates, and a
   * later run of the same goes on with it; call it before SetOutput. */
  void
  SetResume(bool resumes)
  {
    m_Resumes = resumes;
  }
  /** Throws FileError if the file cannot be written. */
  void
  SetOutput(const std::string & file, PixelType kind, bool compress);
  const ImageHeader &
  GetOutputHeader() const
  {
    return m_OutputHeader;
  }

  // The plan.

  /** Within `memory` bytes of the host; 0: half of what is free. `ownBytes`: see JobMemory. Throws JobError. */
  void
  MakePlan(std::uint64_t memory, std::uint64_t ownBytes);
  const StreamedPlan &
  GetPlan() const
  {
    return m_Plan;
  }
  bool
  UsesDevices() const;
  /** Bytes of the memory that is not for divisions, scratch and kept planes. */
  std::uint64_t
  GetBytesBesideDivisions() const
  {
    return m_BesideDivisions;
  }
  /** False in slabs, and for a reconstruction as a whole on a device. */
  bool
  HasPlanOfChunks() const;
  /** The run of the division in the middle, which meets no end of the image; or of all that a device holds. */
  ExecutionRequest
  MakeTypicalRequest() const;
  /** The plan of that run. */
  Plan
  MakeTypicalPlan() const;

  // The run.

  /** The first pass (SetFirstPass): `add` gets each division. */
  void
  RunFirstPass(Monitor * monitor, const std::function<void(const ExecutionRequest &, Monitor *)> & add);
  /** Reads all images once: `add` gets each division. */
  void
  Read(Monitor * monitor, const std::function<void(const ExecutionRequest &, Monitor *)> & add);
  /** Computes and writes, but for the output's name. Throws what ExecuteStreamed throws. */
  const StreamedReport &
  Run(Monitor * monitor);
  /** Gives the output its name. */
  void
  Finish();
  /** The output, for callers that write it themselves while they Read, and finish it. */
  std::shared_ptr<FileSink>
  CreateSink() const;
  /** Adds what sources say of themselves once they were read; Run does that. */
  void
  WarnOfSources();
  /** Warnings for the user: of planning, before Run; then of the files, and of results that were cut. Each is
   * told once. */
  std::vector<std::string>
  TakeWarnings();
  const StreamedReport &
  GetReport() const
  {
    return m_Report;
  }
  std::uint64_t
  GetBytesWritten() const
  {
    return m_Sink->GetBytesWritten();
  }
  /** Voxels of the output that an earlier run had written. */
  std::int64_t
  GetResumed() const
  {
    return m_Resumed;
  }
  /** Steps of a runner that KeepsStates that an earlier run had done. */
  std::int64_t
  GetStepsDone() const
  {
    return m_States ? m_States->GetStepsDone() : 0;
  }

private:
  void
  CheckPieces(const std::string & why) const;
  OutputOptions
  GetOutputOptions() const;
  bool
  CanResume() const;
  /** Whether a run that ends early leaves a state. */
  bool
  KeepsStates() const;
  /** All that the voxels of the output depend on, but for the operation. */
  std::map<std::string, std::string>
  DescribeRun() const;
  /** Inputs and output use so few threads that inputs, and output, hold at most `bytes`. */
  void
  ShareWithFiles(std::uint64_t bytes);
  std::uint64_t
  GetHeldByFiles() const;
  [[noreturn]] void
  RefuseDivisions(const DivisionsError & error, std::uint64_t memory, const std::string & tooLarge);
  struct AdditionalInput
  {
    InputDescription description;
    std::size_t      source; ///< in m_Sources
  };

  JobNames                                 m_Names;
  std::vector<std::shared_ptr<FileSource>> m_Sources; ///< the first image first
  std::vector<std::string>                 m_Inputs;  ///< their names
  std::vector<AdditionalInput>             m_AdditionalInputs;
  Box                                      m_Image{};
  Box                                      m_Whole{};
  std::optional<FilterImage>               m_OutputImage;
  std::int64_t                             m_OutputComponents{ 1 };
  std::string                              m_Output;
  bool                                     m_Compress{ false };
  std::shared_ptr<const ZarrOptions>       m_Zarr;
  bool                                     m_Resumes{ false };
  std::int64_t                             m_Resumed{ 0 };
  std::uint64_t                            m_HeldByOutput{ 0 };
  ImageHeader                              m_OutputHeader;
  StreamedRequest                          m_Request;
  StreamedPlan                             m_Plan;
  StreamedRequest                          m_FirstPass;
  StreamedPlan                             m_FirstPlan;
  std::uint64_t                            m_BesideDivisions{ 0 };
  std::shared_ptr<StateFiles>              m_States;
  std::shared_ptr<FileSink>                m_Sink;
  StreamedReport                           m_Report;
  std::vector<std::string>                 m_Warnings;
};

} // namespace chunkwise::files

#endif
