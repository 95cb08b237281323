/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCufft.h"

#include "chunkwiseError.h"
#include "chunkwiseLibraryFile.h"
#include "chunkwiseResourceCache.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

namespace chunkwise
{

namespace
{

/** The part of cuFFT's interface that is used, the same from CUDA 8 to 13. */
struct Cufft
{
  using Handle = int;
  int (*create)(Handle *);
  int (*destroy)(Handle);
  int (*setAutoAllocation)(Handle, int);
  int (*makePlanMany64)(Handle, int, long long *, long long *, long long, long long, long long *, long long, long long,
                        int, long long, std::size_t *);
  int (*setWorkArea)(Handle, void *);
  int (*setStream)(Handle, cudaStream_t);
  int (*execR2C)(Handle, void *, void *);
  int (*execC2R)(Handle, void *, void *);
  int (*execC2C)(Handle, void *, void *, int);
  int (*execD2Z)(Handle, void *, void *);
  int (*execZ2D)(Handle, void *, void *);
  int (*execZ2Z)(Handle, void *, void *, int);
};

constexpr int CufftAllocFailed = 2;
constexpr int CufftForward = -1;
constexpr int CufftInverse = 1;

/** More complex numbers are not transformed by one call: cuFFT counts some things in 32 bits. */
constexpr long long MostNumbersOfCall = 1LL << 28;

/** The names of cuFFT in CUDA 13, 12 and 11. */
#if defined(_WIN32)
constexpr const char * FileNames[] = { "cufft64_12.dll", "cufft64_11.dll", "cufft64_10.dll" };
#else
constexpr const char * FileNames[] = { "libcufft.so.12",
                                       "libcufft.so.11",
                                       "libcufft.so.10",
                                       "/usr/local/cuda/lib64/libcufft.so" };
#endif

void *
OpenFile(const char * name, std::string & reason)
{
  std::string  why;
  void * const file = OpenLibrary(name, why);
  if (!file)
  {
    reason += (reason.empty() ? "" : "; ") + why;
  }
  return file;
}

template <typename TFunction>
bool
Find(void * file, const char * name, TFunction & function, std::string & reason)
{
  void * const symbol = FindSymbol(file, name);
  function = reinterpret_cast<TFunction>(symbol);
  if (!symbol)
  {
    reason = std::string("it has no ") + name;
  }
  return symbol != nullptr;
}

/** cuFFT's functions, or why there are none. */
struct OpenedCufft
{
  Cufft       functions{};
  bool        isThere{ false };
  std::string reason;

  OpenedCufft()
  {
    void *             file = nullptr;
    const char * const given = std::getenv("CHUNKWISE_CUFFT");
    if (given)
    {
      file = OpenFile(given, reason);
    }
    else
    {
      for (const char * const name : FileNames)
      {
        file = file ? file : OpenFile(name, reason);
      }
    }
    if (!file)
    {
      return;
    }
    reason.clear();
    isThere =
      Find(file, "cufftCreate", functions.create, reason) && Find(file, "cufftDestroy", functions.destroy, reason) &&
      Find(file, "cufftSetAutoAllocation", functions.setAutoAllocation, reason) &&
      Find(file, "cufftMakePlanMany64", functions.makePlanMany64, reason) &&
      Find(file, "cufftSetWorkArea", functions.setWorkArea, reason) &&
      Find(file, "cufftSetStream", functions.setStream, reason) &&
      Find(file, "cufftExecR2C", functions.execR2C, reason) && Find(file, "cufftExecC2R", functions.execC2R, reason) &&
      Find(file, "cufftExecC2C", functions.execC2C, reason) && Find(file, "cufftExecD2Z", functions.execD2Z, reason) &&
      Find(file, "cufftExecZ2D", functions.execZ2D, reason) && Find(file, "cufftExecZ2Z", functions.execZ2Z, reason);
    // One that needs a newer driver says so here.
    Cufft::Handle handle = 0;
    const int     error = isThere ? functions.create(&handle) : 0;
    if (error)
    {
      isThere = false;
      reason = "cufftCreate gives error " + std::to_string(error);
    }
    else if (isThere)
    {
      (void)functions.destroy(handle);
    }
  }
};

const OpenedCufft &
GetCufft()
{
  // Never destroyed: plans may outlive static destruction.
  static const OpenedCufft & opened = *new OpenedCufft;
  return opened;
}

void
Check(int error, const char * call, std::size_t bytes = 0)
{
  if (error)
  {
    throw DeviceError(error == CufftAllocFailed ? DeviceError::Kind::OutOfMemory : DeviceError::Kind::Failed,
                      call,
                      "CUDA",
                      bytes,
                      "cuFFT's error " + std::to_string(error));
  }
}

} // namespace

bool
HasCufft(std::string * reason)
{
  if (reason)
  {
    *reason = GetCufft().reason;
  }
  return GetCufft().isThere;
}

std::string
CufftLines::GetKey() const
{
  std::string key = "cufft " + std::to_string(static_cast<int>(sort)) + (isDouble ? " f64" : " f32");
  for (const long long number :
       { length[0], length[1], inExtent[0], inExtent[1], outExtent[0], outExtent[1], stride, distance })
  {
    key += " " + std::to_string(number);
  }
  return key + " " + std::to_string(rank);
}

/** A plan of cuFFT. Its stream and its work area belong to the plan: one call at a time. */
struct CufftPlan::Group
{
  Cufft::Handle handle{ 0 };
  long long     count{ 0 };
  std::size_t   workBytes{ 0 };
  std::mutex    mutex;

  Group(const CufftLines & lines, long long theCount)
    : count(theCount)
  {
    // cuFFT's real and complex type, complex to real, and both ways: of float, and of double 64 more.
    const int type = (lines.sort == CufftLines::Sort::RealToComplex   ? 0x2a
                      : lines.sort == CufftLines::Sort::ComplexToReal ? 0x2c
                                                                      : 0x29) +
                     (lines.isDouble ? 0x40 : 0);
    const bool    toReal = lines.sort == CufftLines::Sort::ComplexToReal;
    const bool    fromReal = lines.sort == CufftLines::Sort::RealToComplex;
    CufftLines    copy = lines;
    const Cufft & cufft = GetCufft().functions;
    Check(cufft.create(&handle), "cufftCreate");
    int error = cufft.setAutoAllocation(handle, 0);
    if (!error)
    {
      error = cufft.makePlanMany64(handle,
                                   copy.rank,
                                   copy.length,
                                   copy.inExtent,
                                   copy.stride,
                                   (fromReal ? 2 : 1) * copy.distance,
                                   copy.outExtent,
                                   copy.stride,
                                   (toReal ? 2 : 1) * copy.distance,
                                   type,
                                   count,
                                   &workBytes);
    }
    if (error)
    {
      (void)cufft.destroy(handle);
      Check(error, "cufftMakePlanMany64");
    }
  }
  ~Group() { (void)GetCufft().functions.destroy(handle); }
  Group(const Group &) = delete;
  Group &
  operator=(const Group &) = delete;
};

std::shared_ptr<const CufftPlan>
CufftPlan::Get(const CufftLines & lines, long long count, std::size_t workBytes)
{
  // It lives as long as the process: runs may outlive static destruction in other threads.
  static auto & cache = *new ResourceCache;
  // The bytes that an entry counts as: the cache holds 256 of them.
  constexpr std::size_t bytesOfEntry = std::size_t{ 1 } << 20;
  int                   device = 0;
  (void)cudaGetDevice(&device);
  const std::string key = std::to_string(device) + " " + lines.GetKey() + " ";
  const auto        makeGroup = [&](long long groupCount) {
    return std::static_pointer_cast<Group>(cache.GetOrMake(key + std::to_string(groupCount), [&] {
      return ResourceCache::Entry{ std::make_shared<Group>(lines, groupCount), bytesOfEntry };
    }));
  };
  const auto make = [&] {
    const long long numbers = std::max(lines.outExtent[0], lines.inExtent[0]) *
                              (lines.rank == 2 ? std::max(lines.outExtent[1], lines.inExtent[1]) : 1);
    long long together = std::min(count, std::max(1LL, MostNumbersOfCall / std::max(1LL, numbers)));
    auto      group = makeGroup(together);
    while (group->workBytes > workBytes && together > 1)
    {
      together = (together + 1) / 2;
      group = makeGroup(together);
    }
    if (group->workBytes > workBytes)
    {
      throw DeviceError(DeviceError::Kind::Failed,
                        "cufftMakePlanMany64",
                        "CUDA",
                        group->workBytes,
                        "cuFFT asks for this much work area where " + std::to_string(workBytes) +
                          " bytes were planned");
    }
    auto plan = std::make_shared<CufftPlan>();
    plan->m_Lines = lines;
    plan->m_Groups.assign(static_cast<std::size_t>(count / together), group);
    if (count % together)
    {
      plan->m_Groups.push_back(makeGroup(count % together));
    }
    return ResourceCache::Entry{ plan, bytesOfEntry };
  };
  return std::static_pointer_cast<const CufftPlan>(
    cache.GetOrMake("of " + std::to_string(workBytes) + " " + key + std::to_string(count), make));
}

std::size_t
CufftPlan::GetWorkBytes() const
{
  std::size_t most = 0;
  for (const auto & group : m_Groups)
  {
    most = std::max(most, group->workBytes);
  }
  return most;
}

void
CufftPlan::Run(cudaStream_t stream, void * data, bool inverse, void * work) const
{
  const Cufft & cufft = GetCufft().functions;
  auto *        at = static_cast<char *>(data);
  const int     direction = inverse ? CufftInverse : CufftForward;
  for (const auto & group : m_Groups)
  {
    const std::lock_guard<std::mutex> lock(group->mutex);
    Check(cufft.setStream(group->handle, stream), "cufftSetStream");
    Check(cufft.setWorkArea(group->handle, work), "cufftSetWorkArea");
    switch (m_Lines.sort)
    {
      case CufftLines::Sort::RealToComplex:
        Check((m_Lines.isDouble ? cufft.execD2Z : cufft.execR2C)(group->handle, at, at), "cufftExec, real to complex");
        break;
      case CufftLines::Sort::ComplexToReal:
        Check((m_Lines.isDouble ? cufft.execZ2D : cufft.execC2R)(group->handle, at, at), "cufftExec, complex to real");
        break;
      case CufftLines::Sort::Complex:
        Check((m_Lines.isDouble ? cufft.execZ2Z : cufft.execC2C)(group->handle, at, at, direction), "cufftExec");
        break;
    }
    at += group->count * m_Lines.distance * (m_Lines.isDouble ? 16 : 8);
  }
}

} // namespace chunkwise
