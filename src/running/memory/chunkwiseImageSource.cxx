/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseImageSource.h"

namespace chunkwise
{

ImageSource::~ImageSource() = default;
ImageSink::~ImageSink() = default;

bool
ImageSink::TakeRoom()
{
  return false;
}

} // namespace chunkwise
