/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandWarnings_h
#define commandWarnings_h

#include <string>

namespace command
{

/** From now on a warning of ITK or of a filter is one line on standard error, or nothing. */
void
ShowWarnings(bool show);

/** Line breaks become spaces. */
std::string
JoinLines(const std::string & text);

} // namespace command

#endif
