/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseTestWarnings_h
#define itkChunkwiseTestWarnings_h

#include "itkOutputWindow.h"

#include <string>
#include <vector>

namespace chunkwisetest
{

/** Keeps the warnings that ITK displays. */
class WarningCounter : public itk::OutputWindow
{
public:
  using Self = WarningCounter;
  using Superclass = itk::OutputWindow;
  using Pointer = itk::SmartPointer<Self>;
  itkNewMacro(Self);

  void
  DisplayText(const char * text) override
  {
    texts.emplace_back(text);
  }
  std::vector<std::string> texts;
};

/** Takes the warnings while it lives. */
class WarningScope
{
public:
  WarningScope()
    : m_Before(itk::OutputWindow::GetInstance())
    , m_Counter(WarningCounter::New())
  {
    itk::OutputWindow::SetInstance(m_Counter);
  }
  ~WarningScope() { itk::OutputWindow::SetInstance(m_Before); }
  WarningScope(const WarningScope &) = delete;
  WarningScope &
  operator=(const WarningScope &) = delete;

  const std::vector<std::string> &
  GetTexts() const
  {
    return m_Counter->texts;
  }

private:
  itk::OutputWindow::Pointer m_Before;
  WarningCounter::Pointer    m_Counter;
};

} // namespace chunkwisetest

#endif
