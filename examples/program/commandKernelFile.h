/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandKernelFile_h
#define commandKernelFile_h

#include "commandArguments.h"

#include "itkImageFileReader.h"

namespace command
{

/** An image of kernels, the value of `option`. Axes that the file does not have get the size 1. */
template <unsigned int VDimension>
typename itk::Image<double, VDimension>::Pointer
ReadKernel(const std::string & file, const std::string & option)
{
  const auto reader = itk::ImageFileReader<itk::Image<double, VDimension>>::New();
  reader->SetFileName(file);
  reader->UpdateOutputInformation();
  // The reader itself would take the first slice, or mix the components.
  const itk::ImageIOBase & io = *reader->GetImageIO();
  for (unsigned int axis = VDimension; axis < io.GetNumberOfDimensions(); ++axis)
  {
    if (io.GetDimensions(axis) > 1)
    {
      throw WorkError(option + ": " + file + " has " + std::to_string(io.GetNumberOfDimensions()) +
                      " dimensions, there should be " + std::to_string(VDimension));
    }
  }
  if (io.GetNumberOfComponents() != 1)
  {
    throw WorkError(option + ": " + file + " has " + std::to_string(io.GetNumberOfComponents()) +
                    " components a voxel");
  }
  reader->Update();
  const typename itk::Image<double, VDimension>::Pointer kernel = reader->GetOutput();
  kernel->DisconnectPipeline();
  return kernel;
}

} // namespace command

#endif
