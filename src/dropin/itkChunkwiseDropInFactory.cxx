/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseDropInFactory.h"

#include "itkChunkwiseDropIn.h"
#include "itkChunkwiseStandInFilter.h"
#include "itkVersion.h"

#include <exception>

namespace itk
{

namespace
{

/** Convolutions never have ITK's bits: at the level exact a program keeps its own. */
ChunkwiseOverrides
MakeOverrides(bool withConvolutions)
{
  ChunkwiseOverrides overrides;
  AddChunkwiseStandInsOf<unsigned char>(overrides);
  AddChunkwiseStandInsOf<short>(overrides);
  AddChunkwiseStandInsOf<unsigned short>(overrides);
  AddChunkwiseStandInsOf<float>(overrides);
  AddChunkwiseStandInsOfDoubles(overrides);
  if (withConvolutions)
  {
    AddChunkwiseStandInsOfConvolutions(overrides);
  }
  return overrides;
}

} // namespace

ChunkwiseDropInFactory::ChunkwiseDropInFactory()
{
  const ChunkwiseDropInSettings settings = ChunkwiseDropInSettings::FromEnvironment();
  const std::set<std::string>   classes = GetClasses();
  for (const std::string & name : settings.excluded)
  {
    if (classes.count(name) == 0)
    {
      std::string known;
      for (const std::string & one : classes)
      {
        known += (known.empty() ? "" : ", ") + one;
      }
      itkGenericExceptionMacro(<< "CHUNKWISE_DROP_IN_EXCEPT: \"" << name << "\" is none of " << known);
    }
  }
  ChunkwiseDropInSettings::Set(settings);
  if (settings.level == ChunkwiseDropInSettings::Level::Off)
  {
    return;
  }
  for (const ChunkwiseOverride & one : MakeOverrides(settings.level == ChunkwiseDropInSettings::Level::Fast))
  {
    if (settings.excluded.count(one.itkClass) == 0)
    {
      this->RegisterOverride(
        one.replaced.c_str(), one.replacement.c_str(), one.itkClass.c_str(), true, one.create.GetPointer());
    }
  }
}

ChunkwiseDropInFactory::~ChunkwiseDropInFactory() = default;

const char *
ChunkwiseDropInFactory::GetITKSourceVersion() const
{
  return ITK_SOURCE_VERSION;
}

const char *
ChunkwiseDropInFactory::GetDescription() const
{
  return "Chunkwise does the work of ITK's own filters";
}

void
ChunkwiseDropInFactory::RegisterOneFactory()
{
  const Pointer factory = New();
  ObjectFactoryBase::RegisterFactory(factory, ObjectFactoryEnums::InsertionPosition::INSERT_AT_FRONT);
}

std::set<std::string>
ChunkwiseDropInFactory::GetClasses()
{
  std::set<std::string> classes;
  for (const ChunkwiseOverride & one : MakeOverrides(true))
  {
    classes.insert(one.itkClass);
  }
  return classes;
}

} // namespace itk

const char *
ChunkwiseRegisterDropInFactory()
{
  static std::string error;
  try
  {
    error.clear();
    itk::ChunkwiseDropInFactory::RegisterOneFactory();
  }
  catch (const itk::ExceptionObject & exception)
  {
    error = exception.GetDescription();
  }
  catch (const std::exception & exception)
  {
    error = exception.what();
  }
  return error.empty() ? nullptr : error.c_str();
}

/** ITK takes the object without counting the reference. */
extern "C" Chunkwise_EXPORT itk::ObjectFactoryBase *
                            ChunkwiseLoadDropInFactory()
{
  static itk::ChunkwiseDropInFactory::Pointer factory;
  factory = itk::ChunkwiseDropInFactory::New();
  return factory;
}
