# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The version, for who must not import the whole package."""
__version__ = "0.2.0"
