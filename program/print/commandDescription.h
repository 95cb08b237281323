/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandDescription_h
#define commandDescription_h

#include "chunkwiseFilters.h"

#include <string>

namespace command
{

/** "ChunkwiseHMaxima" for "h-maxima": a file name without a dot or a dash. */
std::string
GetModuleName(const chunkwise::FilterDescription & filter);

/** "deviceMemory" for "device-memory": hosts' flags have letters, digits and underscores. */
std::string
GetFlagName(const std::string & option);

/** The value of a parameter in a form before anybody has changed it; empty: it may be left out. */
std::string
GetFormText(const chunkwise::ParameterDescription & parameter);

/** The parameter's help, with what it depends on. */
std::string
GetFormHelp(const chunkwise::FilterDescription & filter, const chunkwise::ParameterDescription & parameter);

/** A filter as the XML of command-line modules, which 3D Slicer, MITK and others read. */
std::string
DescribeModule(const chunkwise::FilterDescription & filter);

/** Writes a launcher and an XML file for each filter into a folder, and makes that if it is not there. Throws
 * WorkError. Returns what to tell the user. */
std::string
WriteSlicerModules(const std::string & folder);

/** The same as scripts with parameters that Fiji asks for. */
std::string
WriteFijiScripts(const std::string & folder);

} // namespace command

#endif
