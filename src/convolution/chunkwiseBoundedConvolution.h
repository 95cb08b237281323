/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBoundedConvolution_h
#define chunkwiseBoundedConvolution_h

#include "chunkwiseImageConvolutionOperation.h"

namespace chunkwise
{

/** A convolution of an image that is 0 beyond `known`, whose result counts for nothing beyond `asked`. Kernels may take
 * shorter transforms then, and leave 0 beyond `asked`, or what was there. */
class BoundedConvolution : public ImageConvolutionOperation
{
public:
  Box known;
  Box asked;

  std::string
  GetKey() const override
  {
    std::string key = ImageConvolutionOperation::GetKey() + " bounded";
    for (const Coordinates & corner : { known.lower, known.upper, asked.lower, asked.upper })
    {
      key += " " + ToString(corner);
    }
    return key;
  }
};

} // namespace chunkwise

#endif
