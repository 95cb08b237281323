/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The mask of filters that smooth by iterations or by differences of values.
#include "chunkwiseEnhancementRows.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseMaskedOperation.h"

#include <algorithm>

namespace chunkwise
{

void
AddSmoothingMask(FilterDescription & row)
{
  row.additionalInputs.push_back(
    { "MaskImage",
      "mask",
      "Smooth only voxels where this image of integers is not 0, as if the image ended there; of "
      "IN's size",
      false,
      false,
      true });
  ParameterDescription outside = MakeParameter("OutsideValue",
                                               "outside-value",
                                               ParameterType::PixelValue,
                                               "Result of voxels outside the mask; by default their own value");
  row.parameters.push_back(outside);
}

bool
HasSmoothingMask(const FilterImage & image)
{
  return std::find(image.additionalInputs.begin(), image.additionalInputs.end(), "MaskImage") !=
         image.additionalInputs.end();
}

std::shared_ptr<const Operation>
InsideMask(const CheckedParameters & parameters, const FilterImage & image, std::shared_ptr<const Operation> inside)
{
  const bool hasMask = HasSmoothingMask(image);
  auto       operation = std::make_shared<MaskedOperation>();
  operation->inside = std::move(inside);
  operation->keepsOutside = !parameters.Has("OutsideValue");
  if (!operation->keepsOutside)
  {
    operation->outsideValue = parameters.Value("OutsideValue");
    const std::string text = operation->outsideValue.ToText();
    if (!hasMask)
    {
      ThrowParameterError("OutsideValue", text + " has no effect without a MaskImage");
    }
    if ((!IsFloatingPoint(image.outputKind) || !operation->outsideValue.IsInteger()) &&
        !operation->outsideValue.IsOf(image.outputKind))
    {
      ThrowParameterError("OutsideValue",
                          text + " is not a value of the output's pixel type, " + PixelTypeName(image.outputKind));
    }
  }
  return hasMask ? operation : operation->inside;
}

} // namespace chunkwise
