/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabTransfer_h
#define chunkwiseSlabTransfer_h

#include "chunkwiseBackgroundThread.h"
#include "chunkwiseSlabPlan.h"
#include "chunkwiseSpooledImage.h"

#include <atomic>

// Threads that read and write for a run in slabs. A source or sink that does not answer keeps them, and the memory that
// they share with the run.
namespace chunkwise
{

/** All memory of a run in slabs, in one block. */
class SlabMemory
{
public:
  explicit SlabMemory(const SlabPlan & plan);
  ~SlabMemory();
  SlabMemory(const SlabMemory &) = delete;
  SlabMemory &
  operator=(const SlabMemory &) = delete;

  char *              scratch{ nullptr };
  std::vector<char *> slots[2]; ///< a piece of each input
  char *              state[2]{ nullptr, nullptr };
  char *              marker{ nullptr };
  char *              forests[2]{ nullptr, nullptr };
  char *              children{ nullptr };
  char *              planeState{ nullptr }; ///< of the plane that the next slab shares with the last one

private:
  char * m_Block;
};

/** A piece that is read. */
struct SlabToRead
{
  Box         box;
  std::size_t firstInput; ///< those before it are not read
  bool        isNext;     ///< it shares a plane with the piece before, which is copied
};

/** Reads pieces in turn into the memory's slots. */
class SlabReader : public BackgroundThread
{
public:
  SlabReader(const SlabRequest & request, std::vector<std::shared_ptr<ImageSource>> sources, const SlabPlan & plan,
             std::vector<SlabToRead> pieces, std::shared_ptr<SlabMemory> memory);
  std::uint64_t
  GetBytes() const
  {
    return m_Bytes;
  }

protected:
  void
  Step(std::int64_t i) override;

private:
  const std::vector<std::shared_ptr<ImageSource>> m_Sources;
  const SlabPlan                                  m_Plan;
  const std::vector<SlabToRead>                   m_Pieces;
  const std::shared_ptr<SlabMemory>               m_Memory;
  const int                                       m_LastAxis;
  const bool                                      m_InPieces;
  std::atomic<std::uint64_t>                      m_Bytes{ 0 };
};

/** Writes pieces that lie in the memory's states in turn. */
class SlabWriter : public BackgroundThread
{
public:
  SlabWriter(const SlabRequest & request, const SlabPlan & plan, std::int64_t pieces,
             std::shared_ptr<SlabMemory> memory);
  /** Puts the next piece, whose voxels are the first of the state. */
  void
  Put(const Box & box);
  std::uint64_t
  GetBytes() const
  {
    return m_Bytes;
  }

protected:
  void
  Step(std::int64_t i) override;

private:
  const std::shared_ptr<ImageSink>  m_Sink;
  const PixelType                   m_Kind;
  const std::shared_ptr<SlabMemory> m_Memory;
  const int                         m_LastAxis;
  const bool                        m_InPieces;
  std::vector<Box>                  m_Boxes;
  std::int64_t                      m_Put{ 0 };
  std::atomic<std::uint64_t>        m_Bytes{ 0 };
};

/** Copies a source that is read in order alone into a spool. */
class SpoolCopier : public BackgroundThread
{
public:
  SpoolCopier(std::shared_ptr<ImageSource> source, std::shared_ptr<SpooledImage> spool, std::size_t bufferBytes);
  /** Throws Aborted, and what the source and the spool throw. Returns the bytes that were read. */
  static std::uint64_t
  Copy(const std::shared_ptr<ImageSource> & source, const std::shared_ptr<SpooledImage> & spool,
       std::size_t bufferBytes, Monitor * monitor);

protected:
  void
  Step(std::int64_t i) override;

private:
  const std::shared_ptr<ImageSource>  m_Source;
  const std::shared_ptr<SpooledImage> m_Spool;
  std::vector<char>                   m_Buffer;
};

/** Says whether to stop, and nothing else. */
class StopMonitor : public Monitor
{
public:
  explicit StopMonitor(const std::atomic<bool> & stop)
    : m_Stop(stop)
  {}
  void
  UpdateProgress(double) override
  {}
  bool
  ShouldAbort() override
  {
    return m_Stop;
  }

private:
  const std::atomic<bool> & m_Stop;
};

} // namespace chunkwise

#endif
