/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The chunkwise program: a subcommand for each capability, images from file to file.
#include "commandArguments.h"
#include "commandDevices.h"
#include "commandOutputFile.h"
#include "commandProgress.h"
#include "commandRun.h"
#include "commandWarnings.h"

#include "itkMultiThreaderBase.h"

#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>

#if defined(__GLIBC__)
#  include <malloc.h>
#endif

namespace
{

/** The pieces of images go back to the system when they are freed; kept by the C library they would be held beside what
 * --memory allows. */
void
GiveMemoryBack()
{
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

/** The part of an exception's text that is for users, on one line. */
std::string
OneLine(const itk::ExceptionObject & error)
{
  std::string text = error.GetDescription();
  // "ITK ERROR: ClassName(0x1234): " comes before what itkExceptionMacro was given.
  const auto address = text.find("(0x");
  const auto end = text.find("): ", address == std::string::npos ? 0 : address);
  if (address != std::string::npos && end != std::string::npos)
  {
    text.erase(0, end + 3);
  }
  return command::JoinLines(text);
}

/** HDF5 throws while it closes a file on a full disk, where nobody can catch it. */
[[noreturn]] void
EndEarly()
{
  command::OutputFile::RemoveUnfinished();
  std::cerr << "chunkwise: a library gave up, perhaps because the disk is full" << std::endl;
  std::_Exit(1);
}

} // namespace

int
main(int argc, char ** argv)
{
  GiveMemoryBack();
  std::set_terminate(EndEarly);
  try
  {
    const command::Arguments arguments = command::ParseArguments(argc, argv);
    if (arguments.threads)
    {
      itk::MultiThreaderBase::SetGlobalMaximumNumberOfThreads(arguments.threads);
      itk::MultiThreaderBase::SetGlobalDefaultNumberOfThreads(arguments.threads);
    }
    command::ShowWarnings(!arguments.quiet);
    command::CatchSignals();
    if (arguments.devicesOnly)
    {
      command::PrintDevices();
    }
    else
    {
      command::Run(arguments);
    }
    return 0;
  }
  catch (const command::TextRequested & requested)
  {
    std::cout << requested.text;
    return 0;
  }
  catch (const command::ArgumentError & error)
  {
    std::cerr << "chunkwise: " << error.what() << std::endl;
    return 2;
  }
  catch (const itk::ProcessAborted &)
  {
    std::cerr << "chunkwise: interrupted" << std::endl;
  }
  catch (const itk::ExceptionObject & error)
  {
    std::cerr << "chunkwise: " << OneLine(error) << std::endl;
  }
  catch (const std::bad_alloc &)
  {
    std::cerr << "chunkwise: out of memory; a smaller --memory streams in more divisions" << std::endl;
  }
  catch (const std::exception & error)
  {
    std::cerr << "chunkwise: " << command::JoinLines(error.what()) << std::endl;
  }
  return 1;
}
