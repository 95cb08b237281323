/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Tells the libraries of 3D Slicer of a module, which its Python cannot: they take a plain C++ object. hostTest.py
// compiles this against the libraries of PyPI's slicer-core, which come without headers, for the library of C++ that
// they have
// (_GLIBCXX_USE_CXX11_ABI=0).
#include <cstddef>
#include <fstream>
#include <new>
#include <sstream>
#include <string>

/** The used part of Slicer's class: more room than it has, and its own constructors. It is never destroyed. */
class ModuleDescription
{
public:
  ModuleDescription();
  ModuleDescription(const ModuleDescription &);
  ~ModuleDescription() {}
  void
  SetType(const std::string & type);
  void
  SetTarget(const std::string & target);
  void
  SetLocation(const std::string & location);

private:
  alignas(std::max_align_t) char m_Room[std::size_t{ 1 } << 14];
};

class ModuleDescriptionParser
{
public:
  int
  Parse(const std::string & xml, ModuleDescription & description);
};

class vtkMRMLCommandLineModuleNode
{
public:
  static void
  RegisterModuleDescription(ModuleDescription description);
};

/** The result of SlicerExecutionModel's parser for a file: 0 is good. */
extern "C" int
RegisterModule(const char * program, const char * xmlFile)
{
  std::ifstream      stream(xmlFile);
  std::ostringstream xml;
  xml << stream.rdbuf();
  auto * const            description = new ModuleDescription;
  ModuleDescriptionParser parser;
  const int               status = parser.Parse(xml.str(), *description);
  if (status == 0)
  {
    description->SetType("CommandLineModule");
    description->SetTarget(program);
    description->SetLocation(program);
    vtkMRMLCommandLineModuleNode::RegisterModuleDescription(*description);
  }
  return status;
}
