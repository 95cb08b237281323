/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDropInFactory_h
#define itkChunkwiseDropInFactory_h

#include "ChunkwiseExport.h"
#include "itkObjectFactoryBase.h"

#include <set>
#include <string>

namespace itk
{
/** \class ChunkwiseDropInFactory
 * \brief Lets Chunkwise do the work of ITK's own filters, in programs that know nothing of it.
 *
 * Once the factory is registered, `New()` of the ITK filters in docs/dropin.md makes an object that is one, of exactly
 * that class, and runs on Chunkwise where the result is the same; ITK's own code runs elsewhere. A program calls
 * RegisterOneFactory(), or ITK loads the plug-in from the folder that ITK_AUTOLOAD_PATH names. Leaves inside of ITK's
 * composite filters are served too.
 *
 * The constructor reads the environment (ChunkwiseDropInSettings::FromEnvironment). It throws itk::ExceptionObject for
 * a value that makes no sense.
 *
 * \ingroup Chunkwise
 */
class Chunkwise_EXPORT ChunkwiseDropInFactory : public ObjectFactoryBase
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseDropInFactory);

  using Self = ChunkwiseDropInFactory;
  using Superclass = ObjectFactoryBase;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkFactorylessNewMacro(Self);

  const char *
  GetNameOfClass() const override
  {
    return "ChunkwiseDropInFactory";
  }
  const char *
  GetITKSourceVersion() const override;
  const char *
  GetDescription() const override;

  /** Registers one, before all other factories. */
  static void
  RegisterOneFactory();

  /** The classes that there are stand-ins for. */
  static std::set<std::string>
  GetClasses();

protected:
  ChunkwiseDropInFactory();
  ~ChunkwiseDropInFactory() override;
};
} // namespace itk

/** itk::ChunkwiseDropInFactory::RegisterOneFactory() for languages that call C, as Python's ctypes. Returns nullptr, or
 * what is wrong with the environment: a text that holds until the next call. Not for several threads at once. */
extern "C" Chunkwise_EXPORT const char *
ChunkwiseRegisterDropInFactory();

#endif
