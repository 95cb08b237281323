/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePipelineJob.h"

#include "chunkwiseInterleaved.h"
#include "chunkwiseOverlap.h"
#include "chunkwisePieceCopies.h"
#include "chunkwiseRegions.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

void
CutIntoPieces(std::size_t input, std::size_t begin, std::size_t end, std::size_t pieceBytes,
              std::vector<Piece> & pieces)
{
  for (; begin < end; begin += pieceBytes)
  {
    pieces.push_back({ input, begin, std::min(begin + pieceBytes, end) });
  }
}

bool
IsFixpoint(const RunContext & context)
{
  return context.request.operation->GetSchedule() == Schedule::Fixpoint;
}

} // namespace

Box
WithLayersBefore(const RunContext & context, const Plan & plan, const Box & box)
{
  Box with = box;
  if (IsFixpoint(context))
  {
    const ExecutionRequest & request = context.request;
    with.lower[plan.sweepAxis] =
      PadAndCrop(box, request.operation->GetHalo(request.image.Extents()), request.region).lower[plan.sweepAxis];
  }
  return with;
}

std::unique_ptr<Job>
JobMaker::Make(const Chunk & chunk, const Job * previous) const
{
  const ExecutionRequest & request = m_Context.request;
  auto                     job = std::make_unique<Job>();
  job->number = previous ? previous->number + 1 : 0;
  job->chunk = chunk;
  this->FindLayersBefore(previous, *job);
  for (const BufferView & input : request.inputs)
  {
    const std::int64_t components = m_Copies.ComponentsToDevice(input, job->inputBox);
    job->inputComponents.push_back(components);
    job->inputs.push_back(this->SequenceOf(input, job->inputBox, components));
  }
  this->FindOverlap(previous, *job);
  for (std::size_t i = 0; i < request.inputs.size(); ++i)
  {
    CutIntoPieces(i,
                  job->overlap[i].bytes,
                  job->inputs[i].GetNumberOfBytes(),
                  m_Copies.PieceBytes(request.inputs[i].kind, job->inputComponents[i]),
                  job->loads);
  }
  job->isLoaded = job->loads.empty();
  job->outputComponents = m_Copies.ComponentsToHost(request.output, chunk.outputBox);
  job->output.push_back(this->SequenceOf(request.output, chunk.outputBox, job->outputComponents));
  CutIntoPieces(0,
                0,
                job->output[0].GetNumberOfBytes(),
                m_Copies.PieceBytes(request.output.kind, job->outputComponents),
                job->stores);
  return job;
}

void
JobMaker::FindOverlap(const Job * previous, Job & job) const
{
  const auto inputs = m_Context.request.inputs.size();
  job.overlap.assign(inputs, {});
  if (!previous || inputs == 0 || m_Plan.inputSlots < 2 || !m_Context.plannerRequest.carryHalo)
  {
    return;
  }
  const std::int64_t components = job.inputComponents[0];
  const bool         areSame = std::all_of(
    job.inputComponents.begin(), job.inputComponents.end(), [&](std::int64_t c) { return c == components; });
  if (!areSame || components != previous->inputComponents[0])
  {
    return;
  }
  const Overlap overlap = chunkwise::FindOverlap(
    SideBySide(previous->chunk.inputBox, components), SideBySide(job.chunk.inputBox, components), m_Plan.sweepAxis);
  job.overlaps = overlap.goesOn;
  for (std::size_t i = 0; i < inputs; ++i)
  {
    const std::size_t pixel = PixelSize(m_Context.inputKinds[i]);
    job.overlap[i] = { pixel * static_cast<std::size_t>(overlap.voxels),
                       pixel * static_cast<std::size_t>(overlap.from),
                       previous->inputs[i].GetNumberOfBytes() / static_cast<std::size_t>(components) };
  }
}

void
JobMaker::FindLayersBefore(const Job * previous, Job & job) const
{
  const Box & to = job.chunk.outputBox;
  job.inputBox = job.chunk.inputBox;
  if (!IsFixpoint(m_Context) || !previous || m_Plan.outputSlots < 2)
  {
    return;
  }
  const int          s = m_Plan.sweepAxis;
  const Box &        from = previous->chunk.outputBox;
  const Box          with = WithLayersBefore(m_Context, m_Plan, to);
  const std::int64_t layers = to.lower[s] - with.lower[s];
  if (Continues(from, to, s) && layers <= from.Extent(s))
  {
    job.inputBox = with;
    job.bytesBefore =
      static_cast<std::size_t>(with.NumberOfVoxels() - to.NumberOfVoxels()) * PixelSize(m_Context.request.output.kind);
    job.layersFrom = previous->bytesBefore + previous->output[0].GetNumberOfBytes() - job.bytesBefore;
  }
}

DenseSequence
JobMaker::SequenceOf(const BufferView & view, const Box & box, std::int64_t components) const
{
  const Box image = GetCopiedBox(*m_Context.request.operation, m_Context.request.image);
  return DenseSequence(SideBySide(view, components), SideBySide(box, components), SideBySide(image, components));
}

} // namespace chunkwise
