/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFailingThreads_h
#define chunkwiseFailingThreads_h

#include <climits>

// A program, or a library for LD_PRELOAD, that has chunkwiseFailingThreads.cxx starts its threads there.
namespace failing_threads
{

/** Threads from number `first` on (0: the next) are not started, until number `end`. */
void
FailBetween(int first, int end = INT_MAX);
/** The number of threads that were asked for since FailBetween. */
int
CountAsked();
/** Called in the thread that starts another: whether that one always starts, and does not count. */
extern bool (*isExempt)();

} // namespace failing_threads

#endif
