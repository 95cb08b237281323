# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# Included before ITK_USE_FILE by what names ITK's classes for formats itself: no factories are registered in that folder. ITK
# before 5.4 has one switch for all kinds of files.
if(ITK_VERSION VERSION_LESS 5.4)
  set(ITK_NO_IO_FACTORY_REGISTER_MANAGER ON)
else()
  foreach(_kind IMAGEIO MESHIO TRANSFORMIO)
    set(ITK_NO_${_kind}_FACTORY_REGISTER_MANAGER ON)
  endforeach()
endif()
