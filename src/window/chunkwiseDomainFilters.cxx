/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What rows share whose windows may see a part of the image alone.
#include "chunkwiseFilterRows.h"
#include "chunkwiseDomainOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

InputDescription
MaskInput()
{
  return { "MaskImage", "mask", "Windows see only voxels where this image of integers is not 0; of IN's size",
           false,       false,  true };
}

ParameterDescription
IgnoreNanParameter()
{
  return MakeParameter("IgnoreNaN", "ignore-nan", ParameterType::Flag, "Ignore voxels that are NaN");
}

ParameterDescription
EmptyValueParameter(const std::string & with)
{
  ParameterDescription empty;
  empty.name = "EmptyValue";
  empty.option = "empty-value";
  empty.type = ParameterType::PixelValue;
  empty.help = "Result of windows that see no voxel, with " + with + " (NaN, as an integer 0)";
  return empty;
}

ParameterDescription
OutputMaskParameter()
{
  return MakeParameter("OutputMask",
                       "output-mask",
                       ParameterType::Flag,
                       "Write 1 where a window sees a voxel and 0 where it sees none, instead of the statistic");
}

} // namespace

void
AddDomain(FilterDescription & row, bool canBeEmpty, bool tellsSeen)
{
  row.additionalInputs.push_back(MaskInput());
  row.additionalInputs.push_back({ "WeightImage",
                                   "weight",
                                   "Weight of each voxel, 0 or more: an image of float32 or float64 of IN's size",
                                   false,
                                   false,
                                   true });
  row.parameters.push_back(IgnoreNanParameter());
  if (canBeEmpty)
  {
    row.parameters.push_back(EmptyValueParameter("a mask, weights or ignored NaN"));
  }
  if (tellsSeen)
  {
    row.parameters.push_back(OutputMaskParameter());
  }
}

void
AddMask(FilterDescription & row, bool canIgnoreNan)
{
  row.additionalInputs.push_back(MaskInput());
  if (canIgnoreNan)
  {
    row.parameters.push_back(IgnoreNanParameter());
  }
  row.parameters.push_back(EmptyValueParameter(canIgnoreNan ? "a mask or ignored NaN" : "a mask"));
  row.parameters.push_back(OutputMaskParameter());
}

std::shared_ptr<const Operation>
InDomain(const CheckedParameters & parameters, const FilterImage & image, std::shared_ptr<const Operation> window,
         bool neverSeesNan)
{
  const auto isGiven = [&](const char * name) {
    return std::find(image.additionalInputs.begin(), image.additionalInputs.end(), name) !=
           image.additionalInputs.end();
  };
  const bool hasMask = isGiven("MaskImage");
  const bool hasWeights = isGiven("WeightImage");
  const bool ignoresNan =
    (parameters.Has("IgnoreNaN") && parameters.Flag("IgnoreNaN")) || (neverSeesNan && IsFloatingPoint(image.inputKind));
  if (hasMask && hasWeights)
  {
    ThrowParameterError("WeightImage", "it is given beside MaskImage, and one of both is enough");
  }
  if (ignoresNan && !IsFloatingPoint(image.inputKind))
  {
    ThrowParameterError(
      "IgnoreNaN", std::string("the image's voxels are ") + PixelTypeName(image.inputKind) + ", of which none is NaN");
  }
  const bool isWhole = !hasMask && !hasWeights && !ignoresNan;
  auto       operation = std::make_shared<DomainOperation>();
  operation->marksSeen = parameters.Has("OutputMask") && parameters.Flag("OutputMask");
  if (operation->marksSeen && isWhole)
  {
    ThrowParameterError("OutputMask",
                        "without what says which voxels windows see, such as MaskImage, all see something");
  }
  if (parameters.Has("EmptyValue"))
  {
    operation->emptyValue = parameters.Value("EmptyValue");
    const std::string text = operation->emptyValue.ToText();
    if (operation->marksSeen)
    {
      ThrowParameterError("EmptyValue", text + " has no effect on an OutputMask");
    }
    if (isWhole)
    {
      ThrowParameterError("EmptyValue",
                          text + " has no effect without what says which voxels windows see, such as MaskImage");
    }
    if ((!IsFloatingPoint(image.outputKind) || !operation->emptyValue.IsInteger()) &&
        !operation->emptyValue.IsOf(image.outputKind))
    {
      ThrowParameterError("EmptyValue",
                          text + " is not a value of the output's pixel type, " + PixelTypeName(image.outputKind));
    }
  }
  if (isWhole)
  {
    return window;
  }
  operation->window = std::move(window);
  operation->domain = hasMask ? DomainKind::Mask : hasWeights ? DomainKind::Weights : DomainKind::All;
  operation->ignoresNan = ignoresNan;
  operation->imageKind = image.inputKind;
  return operation;
}

} // namespace chunkwise
