/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef pythonCore_h
#define pythonCore_h

#include "chunkwiseError.h"
#include "chunkwiseManager.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>

// Shared by the parts of the binding: coordinates, and how a run is asked for, watched and told of. Coordinates are
// the engine's, x first; the package turns NumPy's order around.
namespace chunkwise::python
{

namespace nb = nanobind;

using OperationPointer = std::shared_ptr<const Operation>;
using Integers = std::vector<std::int64_t>;

/** How long runs of one operation took: whether the work takes less time than waking threads does. Runs over the most
 * voxels count. */
class RunTimes
{
public:
  /** Whether the next run of so many voxels shall do without other threads. */
  bool
  AreShort(std::int64_t voxels)
  {
    if (voxels > m_Voxels)
    {
      return voxels <= Few;
    }
    if (std::isinf(m_Together))
    {
      return m_Alone > 0 && m_Alone < Waking;
    }
    const bool tries = m_Alone < 4 * m_Together && ++m_Runs % RunsBetweenTries == 0;
    // Threads that wait for other processes may take longer than one thread took.
    return m_Together < Short ? m_Alone <= m_Together || tries : m_Alone > 0 && m_Alone <= m_Together;
  }
  void
  Add(bool isAlone, std::int64_t voxels, double seconds)
  {
    if (voxels < m_Voxels)
    {
      return;
    }
    if (voxels > m_Voxels)
    {
      *this = RunTimes();
      m_Voxels = voxels;
    }
    if (!isAlone)
    {
      m_Together = std::min(m_Together, seconds);
      return;
    }
    // A long run among short ones has met other processes, several have more to do.
    m_LongRuns = seconds < Long ? 0 : m_LongRuns + 1;
    if (m_LongRuns == 0)
    {
      m_Alone = m_Alone > 0 ? std::min(m_Alone, seconds) : seconds;
    }
    else if (m_LongRuns == 3)
    {
      m_Alone = std::numeric_limits<double>::infinity();
    }
  }

private:
  static constexpr double   Short = 0.5e-3;
  static constexpr double   Long = 2e-3;
  static constexpr unsigned RunsBetweenTries = 16;
  /** Seconds that it takes to wake threads. */
  static constexpr double Waking = 60e-6;
  /** Voxels of an image that nobody would divide. */
  static constexpr std::int64_t Few = 32 * 32 * 32;

  std::int64_t m_Voxels{ 0 };
  double       m_Together{ std::numeric_limits<double>::infinity() };
  double       m_Alone{ 0 }; ///< 0: not tried
  unsigned     m_Runs{ 0 };
  unsigned     m_LongRuns{ 0 };
};

/** An operation as Python holds it. */
struct OperationHandle
{
  OperationPointer operation;
  std::int64_t     components{ 0 }; ///< that a filter gives an output voxel; 0: as many as the input has
  RunTimes         times{};         ///< read and written with Python's lock
};

inline Coordinates
ToCoordinates(const Integers & numbers, std::int64_t other)
{
  if (numbers.size() > static_cast<std::size_t>(MaxDimension))
  {
    throw ParameterError("an array has " + std::to_string(numbers.size()) + " dimensions; up to " +
                         std::to_string(MaxDimension) + " are possible");
  }
  Coordinates coordinates = Coordinates::Filled(other);
  std::copy(numbers.begin(), numbers.end(), coordinates.axis);
  return coordinates;
}

inline Box
ToBox(const Integers & lower, const Integers & upper)
{
  return { ToCoordinates(lower, 0), ToCoordinates(upper, 1) };
}

inline nb::tuple
ToTuple(const Coordinates & coordinates, std::size_t dimension)
{
  nb::list list;
  for (std::size_t a = 0; a < dimension; ++a)
  {
    list.append(coordinates[static_cast<int>(a)]);
  }
  return nb::tuple(list);
}

inline nb::tuple
ToTuple(const Box & box, std::size_t dimension)
{
  return nb::make_tuple(ToTuple(box.lower, dimension), ToTuple(box.upper, dimension));
}

/** How a run is to be done. */
struct RunOptions
{
  BackendChoice    backend{ BackendChoice::Auto };
  std::vector<int> devices;
  Budgets          budgets{};
  unsigned int     threads{ 0 };
  nb::object       progress{ nb::none() };
};

/** Threads that Python asked for by their number; kept, as the default's are. nullptr: the default's. */
Executor *
GetExecutor(unsigned int threads);

/** The same; 0: one for each processor. */
Executor &
GetExecutorFor(unsigned int threads);

nb::dict
Describe(const ExecutionReport & report);

/** Calls Python's function with the progress, and lets Python's signals stop a run. An exception of either is thrown,
 * and reaches the caller of the run. */
class PythonMonitor : public Monitor
{
public:
  explicit PythonMonitor(const nb::object & progress)
    : m_Progress(progress)
  {}
  void
  UpdateProgress(double fraction) override
  {
    if (!m_Progress.is_none())
    {
      const nb::gil_scoped_acquire lock;
      m_Progress(fraction);
    }
  }
  bool
  ShouldAbort() override
  {
    const nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0)
    {
      throw nb::python_error();
    }
    return false;
  }

private:
  const nb::object & m_Progress;
};

/** Runs `work` without Python's lock. */
template <typename TWork>
auto
Unlocked(TWork && work)
{
  const nb::gil_scoped_release unlocked;
  return work();
}

/** An array in a device's memory. Python's side knows whose it is, and keeps it. */
struct DeviceArray
{
  std::uintptr_t data{ 0 };
  Integers       shape;   ///< in NumPy's order
  Integers       strides; ///< voxels
  std::string    kind;
  int            device{ 0 };
  /** Work that the array's owner has enqueued there comes first. */
  std::uintptr_t stream{ 0 };
};

/** The view of an array whose first voxel is at `lower`. */
BufferView
ToView(const DeviceArray & array, const Integers & lower);

/** A request of all of an image of this extent. */
ExecutionRequest
MakeRequest(const OperationPointer & operation, const Integers & extent, const Box & region,
            const RunOptions & options);

/** Tells where the images are. Work that other streams have enqueued for an image is waited for. */
void
PlaceOn(ExecutionRequest & request, const DeviceArray & array);

/** Runs from what Python reads to what it writes (pythonStreams.cxx). */
void
AddStreams(nb::module_ & module);

/** Measurements of labelled objects (pythonMeasure.cxx). */
void
AddMeasurements(nb::module_ & module);

/** Functions over arrays in memory (pythonArrays.cxx). */
void
AddArrays(nb::module_ & module);

} // namespace chunkwise::python

#endif
