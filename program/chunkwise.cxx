/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The chunkwise program: a subcommand for each row of the engine's table of filters, images from file to file.
#include "chunkwiseError.h"
#ifdef CHUNKWISE_HAS_NETWORKS
#  include "chunkwiseNetworkModel.h"
#endif
#include "commandLine.h"
#include "commandRun.h"
#include "commandSignals.h"
#include "commandSteps.h"
#include "fileImage.h"

#ifdef CHUNKWISE_HAS_ITK
#  include "itkMacro.h"
#  include "itkObject.h"
#endif

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
 * --memory allows. Arenas for each thread would be, too. */
void
GiveMemoryBack()
{
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_ARENA_MAX, 2);
#endif
}

/** HDF5 throws while it closes a file on a full disk, where nobody can catch it. */
[[noreturn]] void
EndEarly()
{
  chunkwise::files::RemoveUnfinished();
  command::Say("chunkwise: a library gave up, perhaps because the disk is full\n");
  std::_Exit(1);
}

/** Prints to standard output and notices where that is full. */
int
Print(const std::string & text)
{
  std::cout << text << std::flush;
  if (!std::cout)
  {
    std::cerr << "chunkwise: standard output cannot be written" << std::endl;
    return 1;
  }
  return 0;
}

int
Fail(const std::string & message, int status)
{
  std::cerr << "chunkwise: " << command::JoinLines(message) << std::endl;
  return status;
}

} // namespace

int
main(int argc, char ** argv)
{
  GiveMemoryBack();
  command::KeepStandardError();
  std::set_terminate(EndEarly);
#ifdef CHUNKWISE_HAS_ITK
  itk::Object::SetGlobalWarningDisplay(false);
#endif
#ifdef CHUNKWISE_HAS_NETWORKS
  chunkwise::AddNetworks();
#endif
  command::CommandLine line;
  try
  {
    line = command::ParseCommandLine(argc, argv);
    if (line.untrusted)
    {
      ::setenv("CHUNKWISE_UNTRUSTED", "1", 1);
    }
    command::CatchSignals();
    command::Run(line);
    return Print("");
  }
  catch (const command::TextRequested & requested)
  {
    return Print(requested.text);
  }
  catch (const command::StepFailed & failed)
  {
    return failed.status;
  }
  catch (const command::ArgumentError & error)
  {
    return Fail(error.what(), 2);
  }
  catch (const chunkwise::ParameterError & error)
  {
    return Fail(command::WithOptionNames(error.what(), line), 2);
  }
  catch (const chunkwise::Aborted &)
  {
    Fail("interrupted", 1);
  }
  catch (const command::Interrupted & error)
  {
    Fail(error.what(), 1);
  }
  catch (const std::bad_alloc &)
  {
    return Fail(command::TextOfNoMemory(line), 1);
  }
  catch (const chunkwise::Error & error)
  {
    return Fail(command::WithOptionNames(error.what(), line), 1);
  }
#ifdef CHUNKWISE_HAS_ITK
  catch (const itk::ExceptionObject & error)
  {
    return Fail(error.GetDescription(), 1);
  }
#endif
  catch (const std::exception & error)
  {
    return Fail(error.what(), 1);
  }
  command::DieBySignal();
  return 1;
}
