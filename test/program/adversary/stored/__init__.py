# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
