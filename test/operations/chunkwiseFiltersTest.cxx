/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The table of filters: what it accepts, what it refuses and how, and that every row makes an operation.
#include "chunkwiseFilters.h"

#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseOperations.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseRequiredParameters.h"
#include "chunkwiseVaryingConvolutionOperation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

using namespace chunkwise;

namespace
{

FilterImage
SmallImage()
{
  FilterImage image;
  image.dimension = 3;
  image.extent = { { 20, 15, 10, 1, 1 } };
  image.outputKind = PixelType::Float32;
  image.spacing[0] = 0.5;
  return image;
}

/** Displacements of one voxel along axis 0. */
std::shared_ptr<const KernelStack>
SmallField(const Coordinates & extent)
{
  const auto field = std::make_shared<KernelStack>();
  field->extent = extent;
  for (const double component : { 0.5, 0.0, 0.0 })
  {
    field->kernels.emplace_back(static_cast<std::size_t>(Box::FromExtent(extent).NumberOfVoxels()), component);
  }
  return field;
}

std::string
MessageOf(const std::string & name, const FilterParameters & parameters, const FilterImage & image)
{
  try
  {
    MakeFilterOperation(name, parameters, image);
  }
  catch (const ParameterError & error)
  {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST(Filters, EveryRowMakesAnOperationAndHasNamesOfItsOwn)
{
  std::set<std::string> names;
  for (const FilterDescription & filter : GetFilters())
  {
    SCOPED_TRACE(filter.name);
    EXPECT_TRUE(names.insert(filter.name).second);
    EXPECT_FALSE(filter.title.empty());
    std::set<std::string> options;
    std::set<std::string> parameters;
    for (const ParameterDescription & parameter : filter.parameters)
    {
      EXPECT_TRUE(parameters.insert(parameter.name).second) << parameter.name;
      EXPECT_TRUE(parameter.option.empty() || options.insert(parameter.option).second) << parameter.option;
      EXPECT_FALSE(parameter.help.empty()) << parameter.name;
    }
    for (const InputDescription & input : filter.additionalInputs)
    {
      EXPECT_TRUE(options.insert(input.option).second) << input.option;
    }
    const auto operation = MakeFilterOperation(filter.name, RequiredParameters(filter), SmallImage());
    ASSERT_TRUE(operation);
    EXPECT_EQ(operation->GetKey(),
              MakeFilterOperation(filter.name, RequiredParameters(filter), SmallImage())->GetKey());
  }
  EXPECT_GT(names.size(), 30u);
}

TEST(Filters, FormsHaveAValueForEveryParameterThatIsNeeded)
{
  for (const FilterDescription & filter : GetFilters())
  {
    for (const ParameterDescription & parameter : filter.parameters)
    {
      SCOPED_TRACE(filter.name + " " + parameter.name);
      const bool isFile = parameter.type == ParameterType::Kernel || parameter.type == ParameterType::Network;
      EXPECT_TRUE(!parameter.required || isFile || !parameter.defaultText.empty() || !parameter.exampleText.empty());
      if (!parameter.exampleText.empty() && parameter.exampleText != "auto")
      {
        EXPECT_NO_THROW(ParseParameter(parameter, parameter.exampleText));
      }
      EXPECT_TRUE(parameter.exampleText != "auto" || !parameter.provisionalText.empty());
    }
  }
}

TEST(Filters, EveryParameterChangesTheOperationOrIsRefused)
{
  for (const FilterDescription & filter : GetFilters())
  {
    FilterImage       image = SmallImage();
    const std::string before = MakeFilterOperation(filter.name, RequiredParameters(filter), image)->GetKey();
    const Box         boxBefore = GetFilterOutputBox(filter.name, RequiredParameters(filter), image);
    for (const ParameterDescription & parameter : filter.parameters)
    {
      // Nor parameters that only serve ITK's setters of values that the filter refuses.
      const ParameterDescription * const other =
        parameter.onlyWithName.empty() ? nullptr : filter.FindParameter(parameter.onlyWithName);
      if (parameter.type == ParameterType::Kernel || parameter.type == ParameterType::Network ||
          parameter.choices.size() == 1 || (other && other->choices.size() == 1))
      {
        continue;
      }
      if (filter.name == "entropy" && parameter.name == "IgnoreNaN")
      {
        continue; // no window of it ever sees NaN
      }
      if (parameter.name == "OfGradient")
      {
        continue; // without it there are other images
      }
      if (parameter.name == "FlipAboutOrigin")
      {
        continue; // it moves the output in space
      }
      SCOPED_TRACE(filter.name + " " + parameter.name);
      FilterParameters changed = RequiredParameters(filter);
      image = SmallImage();
      if (parameter.name == "EmptyValue" || parameter.name == "OutputMask" || parameter.option == "outside-value")
      {
        image.additionalInputs = { "MaskImage" };
      }
      if (parameter.name == "IgnoreNaN")
      {
        image.inputKind = PixelType::Float32;
        if (filter.FindParameter("Range"))
        {
          changed.Set("Range", std::vector<double>{ 0, 1 }); // float32 has no default
        }
      }
      if (parameter.name == "SpatialAxes" && filter.outputImage && filter.FindParameter("Lower"))
      {
        changed.SetInteger("Lower", 1);
      }
      if (parameter.name == "DisplacementsArePoints")
      {
        changed.Set("Displacements", SmallField(image.extent));
      }
      if (parameter.name == "UseImageSpacing" && filter.FindParameter("Volume"))
      {
        changed.SetReal("Volume", 90);
      }
      if (!parameter.onlyWithName.empty())
      {
        const std::string & words = parameter.onlyWithValue;
        changed.Set(parameter.onlyWithName, ParseParameter(*other, words.substr(0, words.find('|'))));
      }
      const std::string with = MakeFilterOperation(filter.name, changed, image)->GetKey();
      // A value that is not the default, as far as one serves all of them.
      bool differs = false;
      for (const char * const text : { "contour",
                                       "background",
                                       "erosion",
                                       "on",
                                       "off",
                                       "0.5",
                                       "2",
                                       "3,1",
                                       "0,1",
                                       "2,0,1",
                                       "0,1,1",
                                       "0,1,0",
                                       "1,2,1",
                                       "2,1,3",
                                       "constant",
                                       "mirror",
                                       "mode",
                                       "ball",
                                       "fft",
                                       "heaps",
                                       "blocks",
                                       "discrete",
                                       "std",
                                       "argmax",
                                       "toward-zero",
                                       "li",
                                       "reproducible",
                                       "patches",
                                       "gaussian",
                                       "own",
                                       "lanczos",
                                       "0,1,0,1,0,0,0,0,1",
                                       "0,1,0,2,1,0,0,0,0,0,1,0",
                                       "3,3,3,2,2,2,0,0,0,1,0,0,0,1,0,0,0,1",
                                       "equal",
                                       "inner",
                                       "threshold",
                                       "landweber",
                                       "sobel",
                                       "curvature",
                                       "0.01",
                                       "elements",
                                       "paraboloid",
                                       "scale",
                                       "sato",
                                       "0.25",
                                       "sampled",
                                       "extent",
                                       "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1" })
      {
        FilterParameters one = changed;
        try
        {
          one.Set(parameter.name, ParseParameter(parameter, text));
          if (parameter.name == "GridOrigin")
          {
            one.Set("GridSpacing", std::vector<double>{ 1, 1, 1 });
          }
          if (parameter.name == "DisplacementGrid")
          {
            one.Set("Displacements", SmallField({ { 3, 3, 3, 1, 1 } }));
          }
          if (parameter.name == "GridSpacing")
          {
            one.Set("GridOrigin", std::vector<double>{ 0, 0, 0 });
          }
          if (const std::int64_t components = GetFilterOutputComponents(filter.name, one, image))
          {
            image.extent[MaxDimension - 1] = components;
          }
          differs = differs || MakeFilterOperation(filter.name, one, image)->GetKey() != with ||
                    !(GetFilterOutputBox(filter.name, one, image) == boxBefore);
        }
        catch (const ParameterError & error)
        {
          // No value of this parameter; or axes that the kernel does not keep to; or what stands for another parameter.
          differs = differs || (parameter.name == "SpatialAxes" && std::string(error.what()).find("Kernel") == 0) ||
                    std::string(error.what()) == "Variance: it is given beside Sigma, and one of both is enough";
        }
      }
      EXPECT_TRUE(differs) << before;
    }
  }
}

TEST(Filters, WhatIsWrongIsNamedWithItsValueAndItsRange)
{
  const FilterImage image = SmallImage();
  const auto        with = [](const std::string & name, const ParameterValue & value) {
    FilterParameters parameters;
    parameters.Set("Radius", std::vector<std::int64_t>{ 1 });
    parameters.Set(name, value);
    return parameters;
  };
  const auto integers = [](std::vector<std::int64_t> values) { return ParameterValue(std::move(values)); };
  EXPECT_EQ(MessageOf("mean", FilterParameters(), image), "Radius: it was not set, and has no default");
  EXPECT_EQ(MessageOf("mean", with("Radius", integers({ -1 })), image),
            "Radius: -1 is not a finite number of at least 0");
  EXPECT_EQ(MessageOf("mean", with("Radius", integers({ 1, 2 })), image), "Radius: 2 numbers for 3 spatial axes");
  EXPECT_EQ(MessageOf("mean", with("Radios", integers({ 1 })), image), "Radios: mean has no parameter of this name");
  EXPECT_EQ(MessageOf("mean", with("Radius", ParameterValue(true)), image),
            "Radius: a value of another type was given");
  EXPECT_EQ(MessageOf("mean", with("SpatialAxes", integers({ 3 })), image),
            "SpatialAxes: 3 is not an axis of a 3-D image");
  EXPECT_EQ(MessageOf("mean", with("SpatialAxes", integers({ 1, 1 })), image), "SpatialAxes: 1 is given twice");
  EXPECT_EQ(MessageOf("percentile", with("Percentile", std::vector<double>{ 101 }), image),
            "Percentile: 101 is not a finite number from 0 to 100");
  EXPECT_EQ(MessageOf("mean", with("BoundaryCondition", std::string("wrap")), image),
            "BoundaryCondition: 'wrap' is none of renormalized, zero-flux, constant, mirror, mirror-center, periodic");
  FilterParameters constant = with("BoundaryCondition", std::string("constant"));
  constant.Set("Constant", PixelValue(256));
  EXPECT_EQ(MessageOf("mean", constant, image), "Constant: 256 is not a value of the input's pixel type, uint8");
  // 2^53 + 1: of the 64-bit integers, but of no double.
  constant.Set("Constant", PixelValue(9007199254740993));
  FilterImage wide = image;
  wide.inputKind = wide.outputKind = PixelType::Float64;
  EXPECT_EQ(MessageOf("mean", constant, wide), "Constant: 9007199254740993 is not a number that a double has");
  wide.inputKind = wide.outputKind = PixelType::UInt64;
  const std::string key = MakeFilterOperation("mean", constant, wide)->GetKey();
  constant.Set("Constant", PixelValue(9007199254740992));
  EXPECT_NE(MakeFilterOperation("mean", constant, wide)->GetKey(), key);
  EXPECT_EQ(MakeFilterOperation("mean", constant, wide)->GetKey(), [&] {
    constant.Set("Constant", PixelValue(9007199254740992.0));
    return MakeFilterOperation("mean", constant, wide)->GetKey();
  }());
  FilterParameters large = with("BoundaryCondition", std::string("mirror"));
  large.SetInteger("Radius", 65536);
  EXPECT_EQ(MessageOf("mean", large, image),
            "Radius: 65536 along axis 0 is larger than 65535, the largest with this boundary condition");
  EXPECT_NE(MessageOf("means", FilterParameters(), image).find("the nearest is 'mean'"), std::string::npos);
  FilterParameters height;
  height.Set("Height", PixelValue(0.5));
  EXPECT_EQ(MessageOf("h-maxima", height, image), "Height: 0.5 is not a finite number of at least 0 that uint8 has");
  FilterParameters sigma;
  sigma.SetReal("Sigma", std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(MessageOf("gaussian", sigma, image), "Sigma: nan is not a finite number of at least 0");
}

TEST(Filters, NumbersArePutOnTheAxesInTheirOrder)
{
  FilterParameters parameters;
  parameters.Set("Radius", std::vector<std::int64_t>{ 5, 1 });
  parameters.Set("SpatialAxes", std::vector<std::int64_t>{ 2, 0 });
  const auto mean =
    std::dynamic_pointer_cast<const MeanOperation>(MakeFilterOperation("mean", parameters, SmallImage()));
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->radius, (Coordinates{ { 1, 0, 5, 0, 0 } }));
}

TEST(Filters, ARenormalizedRadiusIsCutAtTheImage)
{
  FilterParameters parameters;
  parameters.SetInteger("Radius", std::numeric_limits<std::int64_t>::max());
  const auto mean =
    std::dynamic_pointer_cast<const MeanOperation>(MakeFilterOperation("mean", parameters, SmallImage()));
  ASSERT_TRUE(mean);
  EXPECT_EQ(mean->radius, (Coordinates{ { 19, 14, 9, 0, 0 } }));
}

TEST(Filters, TheDefaultKindOfOutputHoldsEveryResult)
{
  const auto kindOf = [](const char * name, PixelType input) { return GetDefaultOutputKind(GetFilter(name), input); };
  for (const char * const name : { "variance",        "std",
                                   "entropy",         "log",
                                   "derivative",      "gradient",
                                   "hessian",         "divergence",
                                   "curvature",       "structure-tensor",
                                   "unsharp",         "diffusion",
                                   "total-variation", "coherence-diffusion",
                                   "bilateral",       "normalize",
                                   "vesselness",      "highpass",
                                   "difference",      "convolve",
                                   "convolve-image" })
  {
    EXPECT_EQ(kindOf(name, PixelType::UInt8), PixelType::Float32) << name;
    EXPECT_EQ(kindOf(name, PixelType::Int32), PixelType::Float64) << name;
    EXPECT_EQ(kindOf(name, PixelType::Float64), PixelType::Float64) << name;
  }
  EXPECT_EQ(kindOf("sum", PixelType::UInt16), PixelType::Float64);
  EXPECT_EQ(kindOf("range", PixelType::UInt16), PixelType::UInt16);
  EXPECT_EQ(kindOf("range", PixelType::Int16), PixelType::Float32);
  EXPECT_EQ(kindOf("sat", PixelType::Int8), PixelType::Int64);
  EXPECT_EQ(kindOf("median", PixelType::Int8), PixelType::Int8);
}

TEST(Filters, ACommonKindHasAllValuesOfBoth)
{
  for (int i = 0; i < NumberOfPixelTypes; ++i)
  {
    for (int j = 0; j < NumberOfPixelTypes; ++j)
    {
      const auto a = static_cast<PixelType>(i);
      const auto b = static_cast<PixelType>(j);
      SCOPED_TRACE(std::string(PixelTypeName(a)) + " " + PixelTypeName(b));
      PixelType common{};
      try
      {
        common = GetCommonKind(a, b);
      }
      catch (const ParameterError &)
      {
        const bool wide = (!IsFloatingPoint(a) && PixelSize(a) == 8) || (!IsFloatingPoint(b) && PixelSize(b) == 8);
        EXPECT_TRUE(wide);
        continue;
      }
      EXPECT_EQ(common, GetCommonKind(b, a));
      for (const PixelType kind : { a, b })
      {
        DispatchPixelType(kind, [&](auto pixel) {
          using Limits = std::numeric_limits<decltype(pixel)>;
          if constexpr (Limits::is_integer)
          {
            EXPECT_TRUE(PixelValue(Limits::max()).IsOf(common));
            EXPECT_TRUE(PixelValue(Limits::lowest()).IsOf(common));
            // The largest odd number has no gap beside it.
            EXPECT_TRUE(PixelValue(static_cast<decltype(pixel)>(Limits::max() - 2)).IsOf(common));
          }
          else
          {
            EXPECT_GE(PixelSize(common), sizeof(pixel));
            EXPECT_TRUE(IsFloatingPoint(common));
          }
        });
      }
    }
  }
}

TEST(PixelValue, KeepsEveryIntegerAndReadsItsOwnText)
{
  EXPECT_EQ(PixelValue((std::int64_t{ 1 } << 53) + 1).As<std::int64_t>(), (std::int64_t{ 1 } << 53) + 1);
  EXPECT_EQ(PixelValue(std::numeric_limits<std::int64_t>::lowest()).As<std::int64_t>(),
            std::numeric_limits<std::int64_t>::lowest());
  EXPECT_EQ(PixelValue(std::numeric_limits<std::uint64_t>::max()).As<std::uint64_t>(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(PixelValue(std::numeric_limits<std::uint64_t>::max()).As<std::int64_t>(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(PixelValue(-1).As<std::uint8_t>(), 0);
  EXPECT_EQ(PixelValue(1e300).As<std::int32_t>(), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(PixelValue(9.3e18).As<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  for (const char * const text :
       { "0", "-1", "255", "18446744073709551615", "-9223372036854775808", "0.1", "1e-300", "nan", "inf" })
  {
    EXPECT_EQ(PixelValue::FromText(text).ToText(), text);
  }
  for (const char * const text : { "", " 1", "1 ", "x", "1,2", "18446744073709551616", "--1", "0x" })
  {
    EXPECT_THROW(PixelValue::FromText(text), ParameterError) << text;
  }
  EXPECT_FALSE(PixelValue(0.5).IsOf(PixelType::Int32));
  EXPECT_TRUE(PixelValue(3.0).IsOf(PixelType::UInt8));
  EXPECT_FALSE(PixelValue(-1).IsOf(PixelType::UInt64));
  EXPECT_TRUE(PixelValue(-128).IsOf(PixelType::Int8));
  EXPECT_FALSE(PixelValue(-129).IsOf(PixelType::Int8));
  EXPECT_FALSE(PixelValue((1 << 24) + 1).IsOf(PixelType::Float32));
  EXPECT_TRUE(PixelValue(std::int64_t{ 1 } << 40).IsOf(PixelType::Float32));
}

TEST(Filters, ErrorsHaveTheParameterTheValueAndWhatIsAllowed)
{
  FilterParameters parameters;
  parameters.SetReal("Percentile", 101);
  parameters.SetInteger("Radius", 1);
  try
  {
    MakeFilterOperation("percentile", parameters, SmallImage());
    FAIL() << "no error";
  }
  catch (const ParameterError & error)
  {
    EXPECT_EQ(error.parameter, "Percentile");
    EXPECT_EQ(error.value, "101");
    EXPECT_EQ(error.allowed, "a finite number from 0 to 100");
    EXPECT_EQ(std::string(error.what()), "Percentile: 101 is not a finite number from 0 to 100");
  }
  EXPECT_EQ(ParameterError("Kernel: it is empty").parameter, "Kernel");
  EXPECT_EQ(ParameterError("it is empty: Kernel").parameter, "");
  EXPECT_EQ(ParameterError("Kernel of a file: it is empty").parameter, "");
}

TEST(Filters, MessagesAreWordedForTheirUsers)
{
  UserWords words;
  words.name = [](const std::string & name) {
    return name == "Sigma" ? "--sigma" : name == "Cutoff" ? "--cutoff" : std::string();
  };
  const std::string message = "Sigma: 1e-06 along axis 0 with Cutoff 4; Sigma (Cutoff) and Other";
  EXPECT_EQ(WordMessage(message, words), "--sigma: 1e-06 along axis 0 with --cutoff 4; --sigma (--cutoff) and Other");
  // A part of a file's name, or of another name, is no name.
  EXPECT_EQ(WordMessage("Sigma: /a/Cutoff.mha Cutoff.mha SigmaCutoff xSigma", words),
            "--sigma: /a/Cutoff.mha Cutoff.mha SigmaCutoff xSigma");
  words.dimensionOfReversedAxes = 3;
  EXPECT_EQ(WordMessage("Sigma: 2 along axis 0, axis 2, axis 7", words), "--sigma: 2 along axis 2, axis 0, axis 7");
  EXPECT_EQ(WordMessage("Sigma: 3 x 2 and 4 x 5 x 6 of 7 voxels, 0x2", words),
            "--sigma: (1, 2, 3) and (6, 5, 4) of 7 voxels, 0x2");
  EXPECT_EQ(WordMessage("", words), "");
  EXPECT_EQ(WordMessage("axis 99999999999999999999", words), "axis 99999999999999999999");
}

TEST(Filters, RowsSayHowTheyAreMadeOfAReconstruction)
{
  std::size_t reconstructions = 0;
  for (const FilterDescription & filter : GetFilters())
  {
    SCOPED_TRACE(filter.name);
    const ReconstructionRecipe & recipe = filter.reconstruction;
    FilterImage                  image = SmallImage();
    image.outputKind = PixelType::UInt8;
    for (const InputDescription & input : filter.additionalInputs)
    {
      if (input.required)
      {
        image.additionalInputs.push_back(input.name);
      }
    }
    const auto         operation = MakeFilterOperation(filter.name, RequiredParameters(filter), image);
    const auto * const reconstruction = dynamic_cast<const ReconstructionOperation *>(operation.get());
    // A filter that is made of a window and a reconstruction is no single one.
    EXPECT_EQ(reconstruction != nullptr, recipe.marker != MarkerRule::None && recipe.marker != MarkerRule::Window);
    reconstructions += recipe.marker != MarkerRule::None ? 1 : 0;
    if (!reconstruction)
    {
      continue;
    }
    EXPECT_EQ(reconstruction->erosion, recipe.erosion);
    EXPECT_EQ(reconstruction->marker == ReconstructionMarker::Shifted, recipe.marker == MarkerRule::Shifted);
    EXPECT_EQ(reconstruction->marker == ReconstructionMarker::Border, recipe.marker == MarkerRule::Border);
    EXPECT_EQ(reconstruction->marker == ReconstructionMarker::NextBelow, recipe.marker == MarkerRule::Next);
    EXPECT_EQ(reconstruction->result == ReconstructionResult::Residue, recipe.gives == ReconstructionGives::Residue);
    EXPECT_EQ(reconstruction->result == ReconstructionResult::Extrema, recipe.gives == ReconstructionGives::Extrema);
    EXPECT_EQ(filter.CanExceed(PixelType::Int16), recipe.gives == ReconstructionGives::Residue);
    EXPECT_FALSE(filter.CanExceed(PixelType::UInt16));
    EXPECT_FALSE(filter.CanExceed(PixelType::Float32));
  }
  EXPECT_EQ(reconstructions, 12u);
}

TEST(GaussianWeights, TheDiscreteOnesHaveTheSumAndTheVarianceAtEveryWidth)
{
  for (const double variance : { 0.01, 0.5, 2.0, 9.0, 50.0, 699.0, 701.0, 729.0, 5000.0, 1e6 })
  {
    const auto weights = DiscreteGaussianWeights(variance, 1e-6, 1 << 20);
    double     sum = 0;
    double     second = 0;
    const auto center = static_cast<double>(weights.size() / 2);
    for (std::size_t i = 0; i < weights.size(); ++i)
    {
      ASSERT_TRUE(std::isfinite(weights[i]) && weights[i] >= 0.0) << variance << " " << i;
      ASSERT_EQ(weights[i], weights[weights.size() - 1 - i]);
      sum += weights[i];
      second += weights[i] * (static_cast<double>(i) - center) * (static_cast<double>(i) - center);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12) << variance;
    if (variance > 700.0)
    {
      EXPECT_NEAR(second / variance, 1.0, 1e-3) << variance;
    }
  }
  EXPECT_EQ(DiscreteGaussianWeights(1e4, 0.01, 10).size(), 21u);
}
