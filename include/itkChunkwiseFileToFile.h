/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseFileToFile_h
#define itkChunkwiseFileToFile_h

#include "chunkwiseStreamedRun.h"
#include "itkChunkwiseImageToImageFilter.h"

#include <functional>
#include <map>

namespace itk
{
/** \class ChunkwiseFileToFile
 * \brief Runs a filter, or a sequence of them, from file to file, without an image in memory.
 *
 * It takes the place of an ImageFileReader, a filter and an ImageFileWriter, and is what the program does: while a part
 * of the image is computed the next is read and the one before is written, and each voxel is read once.
 * Reconstructions of images beyond Memory read twice and write once.
 *
 * \code
 * const auto median = itk::RenormalizedMedianImageFilter<ImageType>::New();
 * median->SetRadius(2);
 * const auto run = itk::ChunkwiseFileToFile::New();
 * run->SetInputFileName("brain.mha");
 * run->SetFilter(median.GetPointer());
 * run->SetOutputFileName("median.mha");
 * run->SetMemory(512 << 20);
 * run->Update();
 * \endcode
 *
 * The filter gives its parameters, Backend, Devices and budgets of devices; it needs no input, and its own outputs are
 * not touched. A filter that takes an estimate from its input throws: as a part of something else it has none.
 *
 * \par Types
 * The file's pixels must be such that the filter's input type holds all their values, and its axes as many as the
 * filter's images have, or fewer; they must have as many components. The output file has the filter's output type; what
 * that cannot hold is cut to its range, and told by a warning.
 *
 * \par Files
 * The formats are those of the program ("chunkwise formats"). Spacing, origin, direction and text are kept; what the
 * output's format cannot hold is told by a warning. The output appears under its name when it is complete.
 *
 * \par Memory
 * Memory is what a process that does nothing else may take, as the program's --memory: divisions, scratch, kept planes,
 * what the file formats hold, 32 MiB for the process itself, 16 MiB for threads, and what devices take of the host's
 * memory. So the same files and the same memory have the same plan as in the program. Other memory of the application
 * is not counted. A budget that is too small throws, naming the bytes needed.
 *
 * \par Determinism
 * The bits that the filter gives for the image in memory.
 *
 * \par Errors
 * itk::ExceptionObject, before any work where the cause can be known; nothing is left under the output's name.
 * SetAbortGenerateData ends the run with itk::ProcessAborted.
 *
 * The library Chunkwise::IO has this class.
 *
 * \sa ImageFileReader ImageFileWriter
 * \ingroup Chunkwise
 */
class ChunkwiseFileToFile : public ProcessObject
{
public:
  ITK_DISALLOW_COPY_AND_MOVE(ChunkwiseFileToFile);

  using Self = ChunkwiseFileToFile;
  using Superclass = ProcessObject;
  using Pointer = SmartPointer<Self>;
  using ConstPointer = SmartPointer<const Self>;

  itkNewMacro(Self);
  itkOverrideGetNameOfClassMacro(ChunkwiseFileToFile);

  /** The image to filter. */
  itkSetStringMacro(InputFileName);
  itkGetStringMacro(InputFileName);

  /** A further image, by the name of the filter's input: "MarkerImage". An empty file name takes it away. */
  void
  SetAdditionalInputFileName(const std::string & input, const std::string & file);

  itkSetStringMacro(OutputFileName);
  itkGetStringMacro(OutputFileName);

  /** Compress what is written, where the format can. Default: off. */
  itkSetMacro(UseCompression, bool);
  itkGetConstMacro(UseCompression, bool);
  itkBooleanMacro(UseCompression);

  /** How a store of OME-Zarr is written, as the program's --zarr: "0.4,chunks=64x64x64,codec=blosc-lz4". Default:
   * empty. */
  itkSetStringMacro(ZarrOptions);
  itkGetStringMacro(ZarrOptions);

  /** If a run to a store of Zarr ends early, what it has written stays in a hidden folder beside it, and the next run
   * of the same goes on from there. Iterated deconvolution, to any format, leaves the state after an iteration, and may
   * go on with more iterations. A run of other inputs or parameters then throws. Other filters that compute what lies
   * far apart together begin anew, with a warning. Default: off. */
  itkSetMacro(Resume, bool);
  itkGetConstMacro(Resume, bool);
  itkBooleanMacro(Resume);

  /** Bytes of host memory for the run; 0, the default: half of what is free. */
  itkSetMacro(Memory, SizeValueType);
  itkGetConstMacro(Memory, SizeValueType);

  /** The filter to run; an itk::ChunkwiseSequenceImageFilter for several filters. Update reads its parameters. */
  template <typename TInputImage, typename TOutputImage, typename TSuperclass>
  void
  SetFilter(const ChunkwiseImageToImageFilter<TInputImage, TOutputImage, TSuperclass> * filter)
  {
    m_Filter = filter;
    m_FilterName = filter ? filter->GetFilterName() : "";
    m_Dimension = static_cast<int>(TInputImage::ImageDimension);
    m_Components = ChunkwiseImagePixel<TInputImage>::NumberOfComponents;
    m_OutputComponents = ChunkwiseImagePixel<TOutputImage>::NumberOfComponents;
    m_InputKind = chunkwise::PixelTypeOf<typename ChunkwiseImagePixel<TInputImage>::ComponentType>();
    m_OutputKind = chunkwise::PixelTypeOf<typename ChunkwiseImagePixel<TOutputImage>::ComponentType>();
    m_Describe = [filter](chunkwise::FilterImage & image, chunkwise::StreamedRequest & request) {
      image.outputKind = filter->GetOperationKind();
      const std::string name = filter->GetFilterName();
      request.operation = filter->GetOperation(image);
      request.region = name.empty() ? chunkwise::Box::FromExtent(image.extent)
                                    : chunkwise::GetFilterOutputBox(name, filter->MakeParameters(), image);
      if (!name.empty())
      {
        image = chunkwise::GetFilterOutputImage(name, filter->MakeParameters(), image);
      }
      request.backend = filter->GetBackendChoice();
      request.devices = filter->GetDevices();
      request.budgets.device = filter->GetDeviceMemoryBudget();
      request.budgets.pinned = filter->GetPinnedMemoryBudget();
    };
    this->Modified();
  }

  /** Reads, computes and writes, each time that it is called. */
  void
  Update() override;

  /** The last run's backend, chunks, seconds of reading, computing and writing, voxels that were cut. */
  const chunkwise::StreamedReport &
  GetReport() const
  {
    return m_Report;
  }
  /** How the last run cut the image. */
  const chunkwise::StreamedPlan &
  GetPlan() const
  {
    return m_Plan;
  }
  /** Bytes of files that the last run read, of all inputs, and wrote: compressed bytes where they are compressed. */
  itkGetConstMacro(BytesRead, SizeValueType);
  itkGetConstMacro(BytesWritten, SizeValueType);
  /** Voxels that the last run found written. */
  itkGetConstMacro(ResumedVoxels, SizeValueType);
  /** Iterations of a deconvolution that the last run found done. */
  itkGetConstMacro(ResumedIterations, SizeValueType);

protected:
  ChunkwiseFileToFile() = default;
  ~ChunkwiseFileToFile() override = default;

  void
  GenerateData() override;
  void
  PrintSelf(std::ostream & os, Indent indent) const override;

private:
  /** The image becomes the output's. */
  using Describe = std::function<void(chunkwise::FilterImage &, chunkwise::StreamedRequest &)>;
  class Files;

  std::string                        m_InputFileName;
  std::map<std::string, std::string> m_AdditionalInputFileNames;
  std::string                        m_OutputFileName;
  std::string                        m_ZarrOptions;
  bool                               m_UseCompression{ false };
  bool                               m_Resume{ false };
  SizeValueType                      m_Memory{ 0 };

  LightObject::ConstPointer m_Filter;
  std::string               m_FilterName;
  int                       m_Dimension{ 0 };
  /** Components of a pixel of the filter's images; 0: any. */
  std::int64_t         m_Components{ 1 };
  std::int64_t         m_OutputComponents{ 1 };
  chunkwise::PixelType m_InputKind{ chunkwise::PixelType::UInt8 };
  chunkwise::PixelType m_OutputKind{ chunkwise::PixelType::UInt8 };
  Describe             m_Describe;

  chunkwise::StreamedReport m_Report;
  chunkwise::StreamedPlan   m_Plan;
  SizeValueType             m_BytesRead{ 0 };
  SizeValueType             m_BytesWritten{ 0 };
  SizeValueType             m_ResumedVoxels{ 0 };
  SizeValueType             m_ResumedIterations{ 0 };
};
} // namespace itk

#endif
