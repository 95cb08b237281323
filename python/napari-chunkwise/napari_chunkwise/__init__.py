# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Chunkwise's filters in napari: see ``FilterWidget``."""

__version__ = "0.2.0"
