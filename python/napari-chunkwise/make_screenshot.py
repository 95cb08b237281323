#!/usr/bin/env python3
# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Makes the picture of the README: make_screenshot.py [FILE]. It needs a screen with OpenGL, or Xvfb and Mesa:
xvfb-run -a -s "-screen 0 1280x800x24" python3 make_screenshot.py"""
import sys
import time
from pathlib import Path

import napari
import numpy as np
from napari_chunkwise._widget import FilterWidget
from qtpy.QtWidgets import QApplication


def cells(shape=(40, 220, 260)):
    """Balls of several sizes and some noise."""
    random = np.random.default_rng(3)
    z, y, x = np.indices(shape, "float32")
    image = np.zeros(shape, "float32")
    for _ in range(60):
        center, radius = random.random(3) * shape, random.uniform(6, 16)
        distance = np.sqrt((2 * (z - center[0])) ** 2 + (y - center[1]) ** 2 + (x - center[2]) ** 2)
        image = np.maximum(image, np.clip(radius - distance, 0, 5) * random.uniform(20, 45))
    return np.clip(image + random.normal(20, 18, shape), 0, 255).astype("uint8")


def main():
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1160, 720)
    viewer.add_image(cells(), name="cells", scale=(2, 1, 1), colormap="gray")
    viewer.dims.set_point(0, 40)
    widget = FilterWidget(viewer)
    viewer.window.add_dock_widget(widget, name="Chunkwise: Filters", area="right")
    widget.filter_choice.value = "median"
    widget._controls["radius"].value = "1, 2, 2"
    widget.preview.value = True
    end = time.monotonic() + 60
    while widget._preview_layer is None and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)
    assert widget._preview_layer is not None, widget.status.value
    # The layer to the left, its preview to the right.
    viewer.grid.enabled = True
    viewer.grid.shape = (1, 2)
    viewer.reset_view()
    for _ in range(100):
        QApplication.processEvents()
        time.sleep(0.01)
    file = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("napari-chunkwise.png"))
    viewer.screenshot(file, canvas_only=False, flash=False)
    viewer.close()


if __name__ == "__main__":
    main()
