# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
set(CTEST_PROJECT_NAME "Chunkwise")
set(CTEST_NIGHTLY_START_TIME "01:00:00 UTC")
