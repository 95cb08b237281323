/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDropIn_h
#define itkChunkwiseDropIn_h

#include "ChunkwiseExport.h"
#include "chunkwiseManager.h"

#include <cstdint>
#include <set>
#include <string>

namespace itk
{
/** \class ChunkwiseDropInSettings
 * \brief The user's settings for filters that take the place of ITK's: docs/dropin.md.
 *
 * \ingroup Chunkwise
 */
struct Chunkwise_EXPORT ChunkwiseDropInSettings
{
  enum class Level : std::uint8_t
  {
    Off,   ///< nothing is served
    Exact, ///< what has ITK's bits
    Fast   ///< what is within the tolerances of docs/dropin.md, too
  };

  Level level{ Level::Exact };
  /** Names of ITK's classes, as MedianImageFilter, that are left to ITK. */
  std::set<std::string> excluded;
  /** A line for each run is added to it; empty: none. */
  std::string              reportFile;
  chunkwise::BackendChoice backend{ chunkwise::BackendChoice::Auto };
  /** Images of fewer voxels are left to ITK; negative: what was measured. */
  std::int64_t smallest{ -1 };

  /** Reads the variables CHUNKWISE_DROP_IN, CHUNKWISE_DROP_IN_EXCEPT, CHUNKWISE_DROP_IN_REPORT,
   * CHUNKWISE_DROP_IN_BACKEND and CHUNKWISE_DROP_IN_SMALLEST. Throws itk::ExceptionObject, which names the variable,
   * for a value that makes no sense or a report that cannot be written. Names of classes the factory checks. */
  static ChunkwiseDropInSettings
  FromEnvironment();

  /** Those in force, in all of the process; they may be changed while filters run. */
  static ChunkwiseDropInSettings
  Get();
  static void
  Set(const ChunkwiseDropInSettings & settings);
};

/** \class ChunkwiseStandIn
 * \brief The second base class of a filter that takes the place of an ITK filter: dynamic_cast finds it, and it reports
 * on the last run.
 *
 * \ingroup Chunkwise
 */
class Chunkwise_EXPORT ChunkwiseStandIn
{
public:
  virtual ~ChunkwiseStandIn();

  /** "cpu", "cuda", "cuda+cpu"; "itk" where ITK's own code ran; empty before the first run. */
  const std::string &
  GetBackendUsed() const
  {
    return m_BackendUsed;
  }

  /** Why ITK's own code ran; empty where Chunkwise served. */
  const std::string &
  GetReasonNotServed() const
  {
    return m_ReasonNotServed;
  }

protected:
  ChunkwiseStandIn();

  std::string m_BackendUsed;
  std::string m_ReasonNotServed;
};
} // namespace itk

#endif
