/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandWarnings.h"

#include "itkObjectFactory.h"
#include "itkOutputWindow.h"

#include <iostream>

namespace command
{

namespace
{

class OneLineOutputWindow : public itk::OutputWindow
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(OneLineOutputWindow);

  using Self = OneLineOutputWindow;
  using Superclass = itk::OutputWindow;
  using Pointer = itk::SmartPointer<Self>;
  itkNewMacro(Self);

  void
  DisplayText(const char * text) override
  {
    std::cerr << "chunkwise: " << JoinLines(text) << std::endl;
  }

protected:
  OneLineOutputWindow() = default;
  ~OneLineOutputWindow() override = default;
};

} // namespace

void
ShowWarnings(bool show)
{
  itk::Object::SetGlobalWarningDisplay(show);
  itk::OutputWindow::SetInstance(OneLineOutputWindow::New());
}

std::string
JoinLines(const std::string & text)
{
  std::string line;
  for (const char c : text)
  {
    if (c != '\n' && c != '\r')
    {
      line += c;
    }
    else if (!line.empty() && line.back() != ' ')
    {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ')
  {
    line.pop_back();
  }
  return line;
}

} // namespace command
