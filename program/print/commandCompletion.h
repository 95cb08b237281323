/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandCompletion_h
#define commandCompletion_h

#include <string>

namespace CLI
{
class App;
}

// Texts that are made from the program's options.
namespace command
{

/** A script that completes command lines in "bash" or "zsh". Throws ArgumentError for another shell. */
std::string
WriteCompletion(const std::string & shell, const CLI::App & app);

/** The manual page, in roff. */
std::string
WriteManual(const CLI::App & app);

} // namespace command

#endif
