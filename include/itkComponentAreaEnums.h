/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkComponentAreaEnums_h
#define itkComponentAreaEnums_h

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class ComponentAreaEnums
 * \brief Enumerations of area openings and closings.
 * \ingroup Chunkwise */
class ComponentAreaEnums
{
public:
  /** \ingroup Chunkwise
   * The size of a component: the area that its voxels cover, in 3-D their volume; the longest side of its bounding box;
   * its height, the difference between its extreme value and the nearest value beside it; or the sum of these
   * differences over its voxels. */
  enum class Attribute : std::uint8_t
  {
    Area,
    Extent,
    Height,
    Volume
  };
};
/** The attribute's name in the program. */
inline const char *
ToWord(ComponentAreaEnums::Attribute attribute)
{
  switch (attribute)
  {
    case ComponentAreaEnums::Attribute::Area:
      return "area";
    case ComponentAreaEnums::Attribute::Extent:
      return "extent";
    case ComponentAreaEnums::Attribute::Height:
      return "height";
    case ComponentAreaEnums::Attribute::Volume:
      return "volume";
  }
  return "";
}
inline std::ostream &
operator<<(std::ostream & os, ComponentAreaEnums::Attribute value)
{
  return os << ToWord(value);
}
} // namespace itk

#endif
