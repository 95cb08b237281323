/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDividedImages_h
#define chunkwiseDividedImages_h

#include "chunkwiseManager.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace chunkwise
{

/** The operations that devices which hold an image together run one after the other, see Operation::AsSteps; an
 * independent operation of one input by itself is one step. Empty: devices do not run it so. */
Chunkwise_EXPORT std::vector<std::shared_ptr<const Operation>>
                 FindSteps(const std::shared_ptr<const Operation> & operation, PixelType input, PixelType output);

/** Images of one grid that several devices hold together. Each device has a part of the grid: planes along its slowest
 * axis. An image can have the planes around each part, too, for windows: HandOn brings them from the devices that
 * computed them, directly where the machine lets devices do so (NVLink, PCIe), else through the host's memory. */
class Chunkwise_EXPORT DividedImages
{
public:
  struct Part
  {
    int device{ 0 };
    Box planes{}; ///< that the device computes
    Box around{}; ///< these, and what windows need of other parts
  };
  /** The number of an image. */
  using Image = std::size_t;
  /** The box that a device needs of its inputs to compute `planes`. */
  using InputBoxFunction = std::function<Box(const Box & planes)>;

  DividedImages(Manager & manager, const Budgets & budgets, const Box & grid);
  DividedImages(const DividedImages &) = delete;
  DividedImages &
  operator=(const DividedImages &) = delete;

  /** Divides the grid among the devices, in whole tiles of `tile` planes; drops all images. Returns false if there are
   * fewer tiles than devices. */
  bool
  Divide(const std::vector<int> & devices, std::int64_t tile, const InputBoxFunction & inputBox);
  /** The same, for steps of an operation (FindSteps). False, too, if their tiles are not the same. */
  bool
  Divide(const std::vector<int> & devices, const std::vector<std::shared_ptr<const Operation>> & steps);
  const std::vector<Part> &
  GetParts() const
  {
    return m_Parts;
  }
  /** The axis along which the grid is divided. */
  int
  GetAxis() const
  {
    return m_Axis;
  }

  /** Takes memory for an image, with the planes around each part or without. Throws BudgetError, DeviceError, Error,
   * Aborted. */
  Image
  Add(PixelType kind, bool hasAround, Monitor * monitor = nullptr);
  /** The bytes of such an image on the device of a part. */
  static std::size_t
  CountBytes(const Part & part, PixelType kind, bool hasAround);
  BufferView
  GetView(std::size_t part, Image image) const;
  /** The planes of a part alone. */
  BufferView
  GetPlanes(std::size_t part, Image image) const;
  /** The request that computes the planes of a part of `output` from `inputs`. */
  ExecutionRequest
  MakeRequest(std::size_t part, std::shared_ptr<const Operation> operation, const std::vector<Image> & inputs,
              Image output) const;

  /** Copies an image of the host that holds the grid; of the planes around, too. */
  void
  Load(Image image, const BufferView & host, Monitor * monitor = nullptr);
  void
  Store(const BufferView & host, Image image, Monitor * monitor = nullptr);
  /** The same for some of its planes, those of `box`, part by part. */
  void
  LoadPlanes(Image image, const BufferView & host, const Box & box);
  void
  StorePlanes(const BufferView & host, Image image, const Box & box);
  /** The two images, which are alike, change their numbers. */
  void
  Swap(Image a, Image b)
  {
    std::swap(m_Images[a], m_Images[b]);
  }
  /** Gives back the memory of the image that was added last. */
  void
  RemoveLast()
  {
    m_Images.pop_back();
  }
  PixelType
  GetKind(Image image) const
  {
    return m_Images[image].kind;
  }
  const Box &
  GetGrid() const
  {
    return m_Grid;
  }
  const Budgets &
  GetBudgets() const
  {
    return m_Budgets;
  }
  /** The image has changed: each part gets the planes around it from the others. */
  void
  HandOn(Image image);

  /** Calls body(part) for the number of each part: for the first in the caller's thread, for the others beside it.
   * Throws what one of them threw, when all have ended. */
  void
  ForEachPart(const std::function<void(std::size_t part)> & body) const;

private:
  struct Held
  {
    PixelType                                  kind{ PixelType::UInt8 };
    bool                                       hasAround{ false };
    std::vector<std::shared_ptr<DeviceMemory>> memory; ///< of each part
  };

  Device &
  GetDevice(std::size_t part) const;
  /** The begin of the planes of a box in a part's memory, in bytes. */
  std::size_t
  FindBegin(std::size_t part, Image image, const Box & box) const
  {
    const BufferView view = this->GetView(part, image);
    return static_cast<std::size_t>(view.Offset(box.lower)) * PixelSize(view.kind);
  }
  BufferView
  GetPart(std::size_t part, Image image, const Box & box) const;

  Manager &         m_Manager;
  const Budgets     m_Budgets;
  const Box         m_Grid;
  int               m_Axis{ 0 };
  std::vector<Part> m_Parts;
  std::vector<Held> m_Images;
};

} // namespace chunkwise

#endif
