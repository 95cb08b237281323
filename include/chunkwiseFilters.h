/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFilters_h
#define chunkwiseFilters_h

#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

// The one table of filters: what a filter is called, which parameters it has, and how they become an Operation. ITK's
// filters, the program and other languages all make their operations here, and so compute the same bits.

namespace chunkwise
{

/** Small images that are parameters: the kernels of convolutions. */
struct KernelStack
{
  Coordinates                      extent{ Coordinates::Filled(1) }; ///< of each
  std::vector<std::vector<double>> kernels;                          ///< voxels, x fastest; empty: not known yet
};

class NetworkGraph;

/** Real numbers also are integers, one number also is a list of one; see FilterParameters::Set. */
using ParameterValue = std::variant<bool, std::vector<std::int64_t>, std::vector<double>, PixelValue, std::string,
                                    std::shared_ptr<const KernelStack>, std::shared_ptr<const NetworkGraph>>;

enum class ParameterType
{
  Flag,       ///< bool
  Integer,    ///< one 64-bit integer
  Integers,   ///< as many as ParameterCount says
  Real,       ///< one double
  Reals,      ///< as many as ParameterCount says
  PixelValue, ///< a value that the input's, or the output's, kind has
  Choice,     ///< one of a few words
  Kernel,     ///< a KernelStack
  Network     ///< a NetworkGraph
};

/** How many numbers a list has. */
enum class ParameterCount
{
  PerSpatialAxis, ///< one for all spatial axes, or one for each, in ascending order of the axes
  PerAxis,        ///< one for each axis of the image
  Two,
  Any
};

/** The content of a file that a program or a language reads in place of a list of numbers. */
enum class ParameterFile
{
  None,
  Numbers, ///< a text file of numbers
  Grid     ///< an image: its size, spacing, origin and the rows of its direction, each along the spatial axes
};

class Monitor;

/** Runs an operation without an output over a whole image: the total of the summaries of its pieces (MergeSummary),
 * which may be read anew for each call. `monitor` is never nullptr. */
using SummaryRun = std::function<ChunkState(const std::shared_ptr<const Operation> & operation, Monitor * monitor)>;

/** How the value of a parameter follows from the whole image, for callers who give it the value "auto". */
struct ParameterEstimate
{
  /** The numbers that stand for "auto". `operation` is the filter's, made with provisional values, `input` the kind of
   * the image. `run` reads the image with the further inputs of the filter, and is called as often as it takes. Throws
   * ParameterError if the image gives no value. nullptr: the parameter cannot be "auto". */
  std::vector<double> (*take)(const Operation & operation, PixelType input, const SummaryRun & run,
                              Monitor * monitor){ nullptr };
  /** The operation that needs the most memory among the operations that `take` runs, for plans; nullptr if the pixel
   * type of the image gives the value, so that the image is not read. */
  std::shared_ptr<const Operation> (*plan)(const Operation & operation, PixelType input){ nullptr };
};

/** A row of a filter's parameters. Names are those of ITK's setters. */
struct Chunkwise_EXPORT ParameterDescription
{
  std::string   name;   ///< "PatchRadius"
  std::string   option; ///< of the program, without dashes: "patch"
  ParameterType type{ ParameterType::Flag };
  std::string   help; ///< one sentence, without a full stop
  /** The default as the program would be given it; empty: none, see `required`. */
  std::string              defaultText{};
  bool                     required{ false };
  ParameterCount           count{ ParameterCount::PerSpatialAxis };
  double                   minimum{ -std::numeric_limits<double>::infinity() };
  double                   maximum{ std::numeric_limits<double>::infinity() };
  bool                     aboveMinimum{ false }; ///< the minimum itself is no value
  std::vector<std::string> choices{};
  /** A Choice that may be one for each spatial axis: words between commas. */
  bool choicePerAxis{ false };
  /** The value that stands for the word "auto" until the caller has taken the parameter from the whole image by
   * `estimate` (EstimateParameter); empty: the parameter cannot be "auto". A default may be "auto" too. */
  std::string       provisionalText{};
  ParameterEstimate estimate{};
  /** The name and the value of a choice without which this parameter has no effect; "" and "": it always has. Several
   * values are separated by "|". */
  std::string onlyWithName{};
  std::string onlyWithValue{};
  /** The value that a form shows if there is no default: it suits a first trial on a volume. */
  std::string   exampleText{};
  ParameterFile file{ ParameterFile::None };
  /** A Kernel that is several, along an axis that the image has not. */
  bool isStack{ false };
  /** A Kernel whose voxels are vectors: a kernel for each component. */
  bool isVector{ false };

  /** Whether `word`, or one of several between commas, is one of onlyWithValue. */
  bool
  HasEffectWith(const std::string & word) const;
};

/** An image that a filter takes beside its first one. */
struct InputDescription
{
  std::string name;   ///< "MarkerImage"
  std::string option; ///< "marker"
  std::string help;
  bool        required{ true };
  bool        before{ false };  ///< it comes before the first image in Operation's inputs
  bool        ownKind{ false }; ///< it keeps its own pixel type: an image of radii
};

/** The pixel type of an output if the caller names none. */
enum class DefaultOutput
{
  Input,   ///< the input's kind: no result is outside of it
  Real,    ///< float32, float64 for 32- and 64-bit integers and doubles: results are fractions, negative or large
  RealSum, ///< Real, but float64 for 16-bit integers too, whose sums float32 would round
  InputUnlessSigned, ///< the input's kind, Real for signed integers: their differences go beyond them
  Sum,               ///< the widest of the input's sort: 64-bit integers or float64
  Label,             ///< uint32
  Class              ///< uint8
};

/** From which image a filter that is a reconstruction starts. */
enum class MarkerRule
{
  None,    ///< it is no reconstruction
  Input,   ///< an image that is given
  Shifted, ///< the image, lowered by the parameter Height (by erosion: raised)
  Next,    ///< the image, each voxel at the next lower number (by erosion: higher)
  Border,  ///< the image at its edge, the lowest number elsewhere (by erosion: the largest)
  Window   ///< the minimum over a window (by erosion: the maximum)
};

/** The result of a filter that is a reconstruction. */
enum class ReconstructionGives
{
  Image,   ///< the reconstruction
  Residue, ///< the image minus it, by erosion it minus the image
  Extrema  ///< one value where the reconstruction differs from the image, another one elsewhere
};

/** How a filter is made of a reconstruction, for callers that run its parts themselves, on blocks that several machines
 * hold. If it has the parameter PreserveIntensities, a second reconstruction follows. */
struct ReconstructionRecipe
{
  MarkerRule marker{ MarkerRule::None };
  /** By erosion; a parameter Erosion says it instead if there is one. */
  bool                erosion{ false };
  ReconstructionGives gives{ ReconstructionGives::Image };
};

/** The parameters that a caller has set, by name. */
class Chunkwise_EXPORT FilterParameters
{
public:
  void
  Set(const std::string & name, ParameterValue value)
  {
    m_Values[name] = std::move(value);
  }
  /** Unlike the constructor of a variant, these take a word for a word and a number for a number. */
  void
  Set(const std::string & name, const char * value)
  {
    m_Values[name] = std::string(value);
  }
  void
  SetInteger(const std::string & name, std::int64_t value)
  {
    m_Values[name] = std::vector<std::int64_t>{ value };
  }
  void
  SetReal(const std::string & name, double value)
  {
    m_Values[name] = std::vector<double>{ value };
  }
  bool
  Has(const std::string & name) const
  {
    return m_Values.count(name) != 0;
  }
  const std::map<std::string, ParameterValue> &
  GetValues() const
  {
    return m_Values;
  }

private:
  std::map<std::string, ParameterValue> m_Values;
};

/** The properties of an image that decide how a filter is made for it. */
struct FilterImage
{
  int         dimension{ 3 };
  Coordinates extent{ Coordinates::Filled(1) };
  PixelType   inputKind{ PixelType::UInt8 };
  PixelType   outputKind{ PixelType::UInt8 };
  double      spacing[MaxDimension]{ 1, 1, 1, 1, 1 };
  /** The physical position of voxel 0, and the columns of axes' directions, for grids that are given in space. */
  double origin[MaxDimension]{};
  double direction[MaxDimension][MaxDimension]{ { 1, 0, 0, 0, 0 },
                                                { 0, 1, 0, 0, 0 },
                                                { 0, 0, 1, 0, 0 },
                                                { 0, 0, 0, 1, 0 },
                                                { 0, 0, 0, 0, 1 } };
  /** Which of the filter's further inputs there are, by name. */
  std::vector<std::string> additionalInputs{};
};

class CheckedParameters;

/** A row of the table. */
struct Chunkwise_EXPORT FilterDescription
{
  std::string                       name;  ///< of the program's subcommand: "h-maxima"
  std::string                       group; ///< of the help: "Statistics of windows"
  std::string                       title; ///< one sentence, without a full stop
  std::vector<ParameterDescription> parameters;
  DefaultOutput                     output{ DefaultOutput::Input };
  std::vector<InputDescription>     additionalInputs{};
  /** Made by itself, without other images: it can be a stage of a sequence. */
  bool canBeStage{ true };
  /** Linear in the image: complex numbers go through it part by part. */
  bool isLinear{ false };
  /** Voxels with components go through it, each component by itself. */
  bool takesComponents{ true };
  /** The same bits for any chunks, budgets and devices; else transforms may compute it, whose results have a bound. */
  bool promisesBits{ true };
  /** Written integers are converted from the default kind of output: a wider one has no better results. */
  bool convertsDefaultOutput{ false };
  /** Voxels of the first image may have components, which stand for that image and the further inputs. */
  bool splitsComponents{ false };
  /** Whether results are small whole numbers, which the operation gives in any kind, as classes are; nullptr: no. */
  bool (*givesClasses)(const FilterParameters & parameters){ nullptr };
  ReconstructionRecipe reconstruction{};
  /** Whether results of integers are integers, which the operation gives exactly, as 64-bit integers too (see
   * CheckExactOutput); nullptr: they are not. */
  bool (*givesIntegers)(const FilterParameters &         parameters,
                        const std::vector<std::string> & additionalInputs){ nullptr };
  /** The part of the image that the output covers; nullptr: all. */
  Box (*outputBox)(const CheckedParameters & parameters, const FilterImage & image){ nullptr };
  /** The grid of an output that has other voxels than the image: extent, spacing, origin, direction; nullptr: it has
   * the image's. */
  FilterImage (*outputImage)(const CheckedParameters & parameters, const FilterImage & image){ nullptr };
  /** Numbers that an output voxel has; 0: as many as an input voxel, as where this is nullptr. */
  std::int64_t (*outputComponents)(const CheckedParameters & parameters, const FilterImage & image){ nullptr };
  std::shared_ptr<const Operation> (*make)(const CheckedParameters & parameters, const FilterImage & image){ nullptr };

  /** nullptr if there is none of the name. */
  const ParameterDescription *
  FindParameter(const std::string & parameterName) const;
  /** The parameter that is to follow from the whole image: given as the word "auto", or left at that default where it
   * has an effect; nullptr if there is none. Only the words of parameters are looked at. */
  const ParameterDescription *
  FindAutomatic(const FilterParameters & parameters) const;
  /** Whether results for an image of this kind can be larger than its largest number, at which the operation cuts them.
   */
  bool
  CanExceed(PixelType kind) const;
};

/** All filters, in the order of the program's help. */
Chunkwise_EXPORT const std::vector<FilterDescription> &
                       GetFilters();
using AddFiltersFunction = void (*)(std::vector<FilterDescription> & filters);
/** Adds a family's rows to the table: those of a library beside the engine, or of a program. They come before the rows
 * of the group "Voxel by voxel". It may be called again, and from any thread; rows that a caller has got before stay
 * valid. A row of a name that is there already is an error: ParameterError. */
Chunkwise_EXPORT void
AddFilters(AddFiltersFunction add);
/** Throws ParameterError, which names the nearest filter, if there is none of the name. */
Chunkwise_EXPORT const FilterDescription &
GetFilter(const std::string & name);

/** The value of a parameter that `text` spells; throws ParameterError that begins with the parameter's name. Not for
 * kernels and networks, which are files. */
Chunkwise_EXPORT ParameterValue
ParseParameter(const ParameterDescription & parameter, const std::string & text);

/** Makes a filter's operation for an image, with all parameters checked: against the table, and by the operation for
 * the image and its kinds. Throws ParameterError; the message begins with the parameter's name, and has its value and
 * what would be right. */
Chunkwise_EXPORT std::shared_ptr<const Operation>
MakeFilterOperation(const std::string & name, const FilterParameters & parameters, const FilterImage & image);

/** The part of the image that a filter's output has: all, but for convolutions of valid voxels alone. A box of
 * GetFilterOutputImage. */
Chunkwise_EXPORT Box
GetFilterOutputBox(const std::string & name, const FilterParameters & parameters, const FilterImage & image);

/** The image as a filter's output has it: extent, spacing, origin and direction; the input's, but for filters that give
 * other voxels (FilterDescription::outputImage). A filter's outputBox is a box of it. */
Chunkwise_EXPORT FilterImage
GetFilterOutputImage(const std::string & name, const FilterParameters & parameters, const FilterImage & image);

/** Numbers that a voxel of a filter's output has; 0: as many as one of the input. The engine has them along its last
 * axis: where there are some, FilterImage::extent must say so before MakeFilterOperation. */
Chunkwise_EXPORT std::int64_t
GetFilterOutputComponents(const std::string & name, const FilterParameters & parameters, const FilterImage & image);

/** The kind of output where the caller names none. */
Chunkwise_EXPORT PixelType
GetDefaultOutputKind(const FilterDescription & filter, PixelType input);

/** The kind that the operation gives where its results are converted to integers of the kind `output`: one that cuts
 * and rounds as little as can be. */
Chunkwise_EXPORT PixelType
GetConvertedKind(const FilterDescription & filter, const FilterParameters & parameters,
                 const std::vector<std::string> & additionalInputs, PixelType input, PixelType output);

/** How the users of a program or of a language know what they set. */
struct UserWords
{
  /** The users' name of a parameter, a further image, "Devices" or "Backend"; "" keeps the engine's name. */
  std::function<std::string(const std::string & name)> name;
  /** The axes of the image, which users count from the last one on, as NumPy's do; 0: they count as the engine does. */
  int dimensionOfReversedAxes{ 0 };
};

/** The message of an error in its users' words: names of parameters, numbers of axes, and sizes such as "3 x 2 x 1". */
Chunkwise_EXPORT std::string
                 WordMessage(const std::string & message, const UserWords & words);

/** The most similar of `words`; empty if none is similar. */
Chunkwise_EXPORT std::string
                 NearestWord(const std::string & word, const std::vector<std::string> & words);

/** The smallest kind that has every value of both, float64 for 32-bit integers with floats. Throws ParameterError where
 * there is none: 64-bit integers with floats or of the other sign. */
Chunkwise_EXPORT PixelType
GetCommonKind(PixelType a, PixelType b);

/** The kind of a name as PixelTypeName gives it, or of "float" and "double"; throws ParameterError. */
Chunkwise_EXPORT PixelType
PixelTypeFromName(const std::string & name);

/** Weights of a Gaussian of this variance in voxels, as the discrete analog of the Gaussian has them (T. Lindeberg,
 * "Scale-space for discrete signals", 1990): exp(-t) I_n(t) by the polynomials of M. Abramowitz and I. Stegun, 9.8.1 to
 * 9.8.4, and a downward recurrence; as far as they make up 1 - maximumError, and no more than maximumWidth to a side.
 * They are those of itk::GaussianOperator. */
Chunkwise_EXPORT std::vector<double>
                 DiscreteGaussianWeights(double variance, double maximumError, std::int64_t maximumWidth);
/** The Gaussian at whole numbers, from -radius to radius, with a sum of 1. */
Chunkwise_EXPORT std::vector<double>
                 SampledGaussianWeights(double sigma, std::int64_t radius);

} // namespace chunkwise

#endif
