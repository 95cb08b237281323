#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the picture of the README: make_screenshot.py [FILE]. The volume is the head ch2 of Debian's mricron-data. It needs a screen
with OpenGL, or Xvfb and Mesa: xvfb-run -a -s "-screen 0 1280x800x24" python3 make_screenshot.py"""
import gzip
import sys
import time
from pathlib import Path

import napari
import numpy as np
from napari_chunkwise._widget import FilterWidget
from qtpy.QtWidgets import QApplication

HEAD = Path("/usr/share/mricron/templates/ch2.nii.gz")


def read_head():
    """The voxels of the head (uint8, 1 mm), from its top down and from its front to its back, as napari draws rows from the top."""
    contents = gzip.decompress(HEAD.read_bytes())
    x, y, z = (int(n) for n in np.frombuffer(contents, "<i2", 3, 42))
    offset = int(np.frombuffer(contents, "<f4", 1, 108)[0])
    voxels = np.frombuffer(contents, "u1", x * y * z, offset).reshape(z, y, x)
    return np.ascontiguousarray(voxels[::-1, ::-1])


def wait_until(is_true):
    end = time.monotonic() + 120
    while not is_true() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)


def main():
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1160, 720)
    viewer.add_image(read_head(), name="head", scale=(1, 1, 1), units="mm", colormap="gray", contrast_limits=(0, 160))
    viewer.dims.set_point(0, 100)
    widget = FilterWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Chunkwise: Filters", area="right")
    widget.filter_choice.value = "gradient"
    widget._controls["sigma"].value = "1.5"
    widget.run()
    wait_until(lambda: len(viewer.layers) == 2)
    assert len(viewer.layers) == 2, widget.status.value
    # The layer to the left, the result to the right.
    viewer.grid.enabled = True
    viewer.grid.shape = (1, 2)
    viewer.reset_view()
    viewer.camera.zoom *= 1.15
    end = time.monotonic() + 2
    wait_until(lambda: time.monotonic() > end)
    file = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("napari-chunkwise.png"))
    viewer.screenshot(file, canvas_only=False, flash=False)
    viewer.close()


if __name__ == "__main__":
    main()
