/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStandInRun_h
#define itkChunkwiseStandInRun_h

#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"
#include "itkChunkwiseDropIn.h"
#include "itkProcessObject.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

// The code of stand-ins that needs no templates, so that each of the many instantiations stays small.

namespace itk
{

/** An ITK filter with its present parameters, in terms of the engine's table of filters. */
struct ChunkwiseStandInTask
{
  std::string                 filter;
  chunkwise::FilterParameters parameters;
  /** Why ITK's own code must run. */
  std::string refusal;
  /** Whether results have ITK's bits. */
  bool exact{ true };
  /** ITK's results are right only where the image and the part of it have three voxels along each axis: else its moving
   * histograms keep what they have passed, and its lines find no face to begin at. */
  bool isThinWrong{ false };
  /** ITK's results are right only for the whole image. */
  bool isPartWrong{ false };

  /** The image is continued this far by a value before all else, and the result cut again. */
  chunkwise::Coordinates padding{};
  chunkwise::PixelValue  paddingValue;
  /** ITK's results overflow where ours stay at the type's end: if one is there, ITK's own code must run. */
  bool overflowsAtMaximum{ false };
  /** If a result is not finite, ITK's own code must run. */
  bool mustBeFinite{ false };
  /** A NaN or an infinity may change voxels far from it: ITK's own code must run. */
  bool spreads{ false };
  /** A marker beyond the mask is an error, which ITK's own code makes. */
  bool hasMarker{ false };
  bool byErosion{ false };
  /** For standard deviations: the divisor is n - 1; n counts the voxels of the box of this radius that are inside. */
  bool                   divisorIsLessOne{ false };
  chunkwise::Coordinates radius{};

  /** Smaller images are not left to ITK. */
  bool servesSmall{ false };

  /** Richardson-Lucy deconvolution by ITK's definition: the filter, a convolution, is run on the image grown to this
   * extent, by so many voxels below. */
  bool                   deconvolves{ false };
  chunkwise::Coordinates grown{};
  chunkwise::Coordinates grownBelow{};

  /** Diffusion that takes the image's gradient magnitude anew after so many of its iterations; 0: it does not. */
  std::int64_t iterations{ 0 };
  std::int64_t iterationsOfGradient{ 0 };

  void
  Refuse(const std::string & why)
  {
    refusal = refusal.empty() ? why : refusal;
  }
};

/** The images of a run, in coordinates where the first input's largest possible region begins at 0. */
struct ChunkwiseStandInImages
{
  chunkwise::FilterImage             image;
  std::vector<chunkwise::BufferView> inputs;
  chunkwise::Box                     region;
};

/** A run of a stand-in, which ends in a line of the report. */
class ChunkwiseStandInRun
{
public:
  explicit ChunkwiseStandInRun(ProcessObject & filter)
    : m_Filter(filter)
  {}

  /** Everything that can be known before the output has memory; whether Chunkwise is to do it. */
  bool
  Prepare(const ChunkwiseStandInTask & task, const ChunkwiseStandInImages & images);

  /** Whether Chunkwise did it. Throws itk::ProcessAborted, and what an observer throws. */
  bool
  Execute(const chunkwise::BufferView & output);

  /** Says why not. */
  void
  Refuse(const std::string & why)
  {
    m_Refusal = why;
  }

  /** "itk" where the run was refused. */
  std::string
  GetBackendUsed() const
  {
    return m_Refusal.empty() ? m_Backend : "itk";
  }
  const std::string &
  GetReasonNotServed() const
  {
    return m_Refusal;
  }

  /** To be called when the filter has finished. */
  void
  Report() const;

private:
  void
  Compute(const chunkwise::BufferView & output);
  /** For a task that deconvolves. */
  bool
  PrepareDeconvolution();
  void
  Deconvolve(const chunkwise::BufferView & output, chunkwise::Executor & executor, chunkwise::Monitor & monitor);
  /** Runs of one gradient magnitude, one after the other. */
  void
  Diffuse(chunkwise::ExecutionRequest & request, chunkwise::Monitor & monitor);

  ProcessObject &                             m_Filter;
  std::chrono::steady_clock::time_point       m_Begin{ std::chrono::steady_clock::now() };
  ChunkwiseDropInSettings                     m_Settings{ ChunkwiseDropInSettings::Get() };
  ChunkwiseStandInTask                        m_Task;
  ChunkwiseStandInImages                      m_Images;
  std::shared_ptr<const chunkwise::Operation> m_Operation;
  std::shared_ptr<const chunkwise::Operation> m_Backward; ///< of a deconvolution: with the mirrored kernel
  std::string                                 m_Backend;
  std::string                                 m_Refusal;
};

} // namespace itk

#endif
