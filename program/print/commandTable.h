/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandTable_h
#define commandTable_h

#include <string>

namespace command
{

/** The table of filters: a line for each, or all that is known of them, as JSON. */
std::string
DescribeTable(bool asJson);

} // namespace command

#endif
