/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandRun_hxx
#define commandRun_hxx

#include "commandFilters.h"
#include "commandMemory.h"
#include "commandOutputFile.h"
#include "commandProgress.h"
#include "commandReport.h"
#include "commandRun.h"
#include "commandStatistics.h"

#include "itkImageFileReader.h"
#include "itkImageFileWriter.h"
#include "itkImageRegionSplitterSlowDimension.h"

#include <algorithm>
#include <chrono>
#include <iostream>

namespace command
{

/** Reads, filters and writes one file. */
template <typename TInputImage, typename TOutputImage>
class Pipeline
{
public:
  static constexpr unsigned int Dimension = TInputImage::ImageDimension;

  explicit Pipeline(const Arguments & arguments)
    : m_Arguments(arguments)
    , m_Reader(itk::ImageFileReader<TInputImage>::New())
    , m_Filter(MakeFilterOrTable<TInputImage, TOutputImage>(arguments))
    , m_OutputIO(
        itk::ImageIOFactory::CreateImageIO(arguments.output.c_str(), itk::ImageIOFactory::IOFileModeEnum::WriteMode))
  {
    if (!m_OutputIO)
    {
      throw ArgumentError("OUT: no format has the ending of " + arguments.output);
    }
    m_OutputIO->SetFileName(arguments.output);
    m_Reader->SetFileName(arguments.input);
    // A division is read anew; kept, it would only take memory beside the next one.
    m_Reader->ReleaseDataFlagOn();
    m_Filter->SetInput(m_Reader->GetOutput());
    const std::string & second = arguments.marker.empty() ? arguments.subtrahend : arguments.marker;
    if (!second.empty())
    {
      m_SecondReader = itk::ImageFileReader<TInputImage>::New();
      m_SecondReader->SetFileName(second);
      m_SecondReader->ReleaseDataFlagOn();
      // A marker comes before the mask.
      m_Filter->SetInput(arguments.marker.empty() ? 1 : 0, m_SecondReader->GetOutput());
      m_Filter->SetInput(arguments.marker.empty() ? 0 : 1, m_Reader->GetOutput());
    }
    // Wider integers are of summed-area tables alone.
    if constexpr (itk::ChunkwiseImageToImageFilter<TInputImage, TOutputImage>::GivesSameTypeOrReal)
    {
      using BoxStatistic = BoxStatisticFilter<TInputImage, TOutputImage>;
      if (auto * const box = dynamic_cast<BoxStatistic *>(m_Filter.GetPointer()); box && !arguments.radiusImage.empty())
      {
        m_RadiusReader = itk::ImageFileReader<RadiusImage<TInputImage>>::New();
        m_RadiusReader->SetFileName(arguments.radiusImage);
        m_RadiusReader->ReleaseDataFlagOn();
        box->SetRadiusImage(m_RadiusReader->GetOutput());
      }
    }
    m_Filter->SetBackend(static_cast<itk::ChunkwiseEnums::Backend>(arguments.backend));
    m_Filter->SetDevices(arguments.devices);
    m_Filter->SetDeviceMemoryBudget(arguments.deviceMemory);
    m_Filter->UpdateOutputInformation();
    m_Largest = m_Filter->GetOutput()->GetLargestPossibleRegion();
    ChooseDivisions();
  }

  void
  PrintPlanOnly()
  {
    PrintHeader(std::cout);
    PrintDivisions(std::cout, m_Divisions);
    const chunkwise::Plan plan = MakePlanOfADivision();
    PrintPlan(std::cout, plan, Dimension, UsesDevices());
    if (UsesDevices())
    {
      std::cout << "expected: " << plan.seconds * m_Divisions.count << " s without reading and writing files\n";
    }
    else
    {
      std::cout << "expected: unknown, the time model is that of CUDA devices\n";
    }
  }

  void
  Execute()
  {
    if (m_Arguments.verbose)
    {
      PrintHeader(std::cerr);
      PrintDivisions(std::cerr, m_Divisions);
      PrintPlan(std::cerr, MakePlanOfADivision(), Dimension, UsesDevices());
    }
    const auto start = std::chrono::steady_clock::now();
    OutputFile file(m_Arguments.output);
    {
      const auto writer = itk::ImageFileWriter<TOutputImage>::New();
      writer->SetInput(m_Filter->GetOutput());
      writer->SetFileName(file.GetPath().string());
      writer->SetNumberOfStreamDivisions(m_Divisions.count);
      const Progress progress(*m_Filter, m_Divisions.count, m_Largest.GetNumberOfPixels(), !m_Arguments.quiet);
      writer->Update();
    }
    if (WasInterrupted())
    {
      throw WorkError("interrupted");
    }
    file.CheckIsComplete(GetOutputBytes());
    file.Commit();
    if (m_Arguments.verbose)
    {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::cerr << "backend: " << m_Filter->GetBackendUsed() << "\ntime: " << seconds << " s, "
                << 1e-6 * static_cast<double>(m_Largest.GetNumberOfPixels()) / seconds
                << " Mvoxel/s\npeak memory: " << FormatBytes(static_cast<double>(GetPeakMemory())) << "\n";
    }
  }

private:
  bool
  UsesDevices() const
  {
    return m_Filter->GetBackend() != itk::ChunkwiseEnums::Backend::CPU &&
           !chunkwise::Manager::GetGlobal().GetDevices().empty();
  }

  std::uint64_t
  GetOutputBytes() const
  {
    return m_Largest.GetNumberOfPixels() * sizeof(typename TOutputImage::PixelType);
  }

  /** What the pipeline holds while it computes a region of the output. */
  struct Footprint
  {
    std::uint64_t read;
    std::uint64_t atOnce;
  };

  Footprint
  GetFootprint(const typename TOutputImage::RegionType & region)
  {
    m_Filter->GetOutput()->SetRequestedRegion(region);
    m_Filter->GetOutput()->PropagateRequestedRegion();
    // What the reader makes of the request: the whole image where the format cannot be read in pieces.
    std::uint64_t voxels = m_Reader->GetOutput()->GetRequestedRegion().GetNumberOfPixels();
    if (m_Arguments.filter == Filter::SummedAreaTable && m_Reader->GetModifiableImageIO()->CanStreamRead())
    {
      // Pieces in order hand their sums on, which the request for a single piece does not know of.
      voxels = region.GetNumberOfPixels();
    }
    const std::uint64_t read = voxels * sizeof(typename TInputImage::PixelType);
    const std::uint64_t written = region.GetNumberOfPixels() * sizeof(typename TOutputImage::PixelType);
    // A file of another component type of the same kind (long, long long) is converted through a buffer.
    using Pixel = typename TInputImage::PixelType;
    const bool converts = m_Reader->GetImageIO()->GetComponentType() != itk::ImageIOBase::MapPixelType<Pixel>::CType;
    // Radii are converted too.
    const std::uint64_t radii = m_RadiusReader ? voxels * 2 * sizeof(int) : 0;
    return { read, read * (m_SecondReader ? 2 : 1) * (converts ? 2 : 1) + radii + written };
  }

  typename TOutputImage::RegionType
  GetPiece(unsigned int i, unsigned int count) const
  {
    typename TOutputImage::RegionType piece = m_Largest;
    itk::ImageRegionSplitterSlowDimension::New()->GetSplit(i, count, piece);
    return piece;
  }

  /** The footprint of `requested` divisions, as many as the writer makes of them. */
  Divisions
  MakeDivisions(unsigned int requested)
  {
    Divisions divisions;
    divisions.count = itk::ImageRegionSplitterSlowDimension::New()->GetNumberOfSplits(m_Largest, requested);
    divisions.axis = Dimension - 1;
    while (divisions.axis > 0 && m_Largest.GetSize(divisions.axis) == 1)
    {
      --divisions.axis;
    }
    divisions.bytesWritten = GetOutputBytes();
    for (unsigned int i = 0; i < divisions.count; ++i)
    {
      const Footprint footprint = GetFootprint(GetPiece(i, divisions.count));
      divisions.bytesRead += footprint.read;
      divisions.bytesAtOnce = std::max(divisions.bytesAtOnce, footprint.atOnce);
    }
    return divisions;
  }

  /** What contexts of devices and their kernels take of the host's memory; known only once they are there. */
  std::uint64_t
  MemoryOfContexts() const
  {
    constexpr std::uint64_t first = 128;
    constexpr std::uint64_t each = 64;
    return UsesDevices() ? (first + each * chunkwise::Manager::GetGlobal().GetDevices().size()) << 20 : 0;
  }

  void
  ChooseDivisions()
  {
    const auto slowest = static_cast<unsigned int>(
      std::min<std::uint64_t>(itk::NumericTraits<int>::max(), m_Largest.GetSize(MakeDivisions(1).axis)));
    const std::uint64_t available = GetAvailableMemory();
    const std::uint64_t memory = m_Arguments.memory ? m_Arguments.memory : available / 2;
    if (m_Arguments.divisions)
    {
      m_Divisions = MakeDivisions(m_Arguments.divisions);
      RequireStreaming("--divisions", std::string());
      return;
    }

    // To look for devices takes memory itself.
    const std::uint64_t ofContexts = MemoryOfContexts();
    // The program itself, and room for what the file formats and the threads take.
    std::uint64_t own = GetPeakMemory() + (std::uint64_t{ 24 } << 20);
    // Devices are to have as much again for pinned memory and divisions.
    const bool forgoesDevices =
      ofContexts > 0 && memory < own + 2 * ofContexts && m_Arguments.backend == chunkwise::BackendChoice::Auto;
    if (forgoesDevices)
    {
      m_Filter->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
    }
    own += UsesDevices() ? ofContexts : 0;
    if (memory <= own)
    {
      throw WorkError("--memory: " + FormatBytes(static_cast<double>(memory)) + " is less than the " + FormatNeed(own) +
                      " that the program itself needs");
    }
    // A quarter for scratch of the CPU, and where there are devices as much for pinned memory.
    const std::size_t   devices = UsesDevices() ? chunkwise::Manager::GetGlobal().GetDevices().size() : 0;
    const std::uint64_t quarter = (memory - own) / 4;
    if (m_Arguments.memory)
    {
      m_Filter->SetHostMemoryBudget(quarter);
      m_Filter->SetPinnedMemoryBudget(devices ? std::min<std::uint64_t>(quarter / devices, std::uint64_t{ 256 } << 20)
                                              : 0);
    }
    const std::uint64_t room = (memory - own) - quarter * (devices ? 2 : 1);

    unsigned int low = 1;
    unsigned int high = slowest;
    m_Divisions = MakeDivisions(low);
    if (m_Divisions.bytesAtOnce > room)
    {
      const Divisions finest = MakeDivisions(high);
      if (finest.bytesAtOnce > room)
      {
        m_Divisions = finest;
        RequireStreaming("--memory", FormatBytes(static_cast<double>(memory)));
        throw WorkError("--memory: one of " + std::to_string(finest.count) + " divisions needs " +
                        FormatNeed(own + finest.bytesAtOnce + quarter * (devices ? 2 : 1)) + ", more than " +
                        FormatBytes(static_cast<double>(memory)));
      }
      while (low + 1 < high)
      {
        const unsigned int middle = low + (high - low) / 2;
        (MakeDivisions(middle).bytesAtOnce > room ? low : high) = middle;
      }
      m_Divisions = MakeDivisions(high);
    }
    RequireStreaming("--memory", FormatBytes(static_cast<double>(memory)));
    if (forgoesDevices && !m_Arguments.quiet)
    {
      std::cerr << "the CPU computes: --memory leaves too little beside the "
                << FormatBytes(static_cast<double>(ofContexts)) << " that devices take of the host's\n";
    }
  }

  /** Throws if more than one division is needed and a format has no pieces. */
  void
  RequireStreaming(const std::string & option, const std::string & memory)
  {
    if (m_Divisions.count <= 1)
    {
      return;
    }
    const std::string why =
      memory.empty() ? std::string(" cannot be ") : " does not fit into " + memory + " and cannot be ";
    const std::string which = " in pieces; .mha, .mhd, .mrc, .vtk and .h5 can";
    if (!m_OutputIO->CanStreamWrite())
    {
      throw WorkError(option + ": OUT " + m_Arguments.output + why + "written" + which);
    }
    if (!m_Reader->GetModifiableImageIO()->CanStreamRead())
    {
      throw WorkError(option + ": IN " + m_Arguments.input + why + "read" + which);
    }
  }

  chunkwise::Plan
  MakePlanOfADivision()
  {
    return m_Filter->MakePlan(GetPiece(m_Divisions.count / 2, m_Divisions.count));
  }

  void
  PrintHeader(std::ostream & os) const
  {
    os << "image: " << m_Arguments.input << ", ";
    for (unsigned int a = 0; a < Dimension; ++a)
    {
      os << (a ? " x " : "") << m_Largest.GetSize(a);
    }
    os << " voxels of " << chunkwise::PixelKindName(chunkwise::PixelKindOf<typename TInputImage::PixelType>()) << " to "
       << chunkwise::PixelKindName(chunkwise::PixelKindOf<typename TOutputImage::PixelType>()) << ", "
       << m_Filter->GetNameOfClass() << "\n";
  }

  const Arguments &                                   m_Arguments;
  typename itk::ImageFileReader<TInputImage>::Pointer m_Reader;
  /** Only a difference and a reconstruction have one. */
  typename itk::ImageFileReader<TInputImage>::Pointer                           m_SecondReader;
  typename itk::ImageFileReader<RadiusImage<TInputImage>>::Pointer              m_RadiusReader;
  typename itk::ChunkwiseImageToImageFilter<TInputImage, TOutputImage>::Pointer m_Filter;
  itk::ImageIOBase::Pointer                                                     m_OutputIO;
  typename TOutputImage::RegionType                                             m_Largest;
  Divisions                                                                     m_Divisions;
};

template <typename TInputPixel, typename TOutputPixel, unsigned int VDimension>
void
RunOfTypes(const Arguments & arguments)
{
  Pipeline<itk::Image<TInputPixel, VDimension>, itk::Image<TOutputPixel, VDimension>> pipeline(arguments);
  if (arguments.planOnly)
  {
    pipeline.PrintPlanOnly();
  }
  else
  {
    pipeline.Execute();
  }
}

template <unsigned int VDimension>
void
RunOfDimension(const Arguments & arguments, chunkwise::PixelKind kind)
{
  chunkwise::DispatchPixelKind(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if (arguments.filter == Filter::Statistics)
    {
      return PrintStatistics<itk::Image<Pixel, VDimension>>(arguments);
    }
    const std::string own = chunkwise::PixelKindName(kind);
    using Sum = itk::SummedAreaTablePixelType<Pixel>;
    const std::string sum = chunkwise::PixelKindName(chunkwise::PixelKindOf<Sum>());
    const bool        isTable = arguments.filter == Filter::SummedAreaTable;
    const std::string type = !arguments.outputType.empty() ? arguments.outputType : isTable ? sum : own;
    if (type == own)
    {
      RunOfTypes<Pixel, Pixel, VDimension>(arguments);
    }
    else if (type == "float32" || type == "float")
    {
      RunOfTypes<Pixel, float, VDimension>(arguments);
    }
    else if (type == "float64" || type == "double")
    {
      RunOfTypes<Pixel, double, VDimension>(arguments);
    }
    else if (isTable && type == sum)
    {
      RunOfTypes<Pixel, Sum, VDimension>(arguments);
    }
    else
    {
      throw ArgumentError("--output-type: " + type + " is not " + own + ", the type of IN, nor float32 nor float64" +
                          (isTable ? ", nor " + sum : std::string()));
    }
  });
}

} // namespace command

#endif
