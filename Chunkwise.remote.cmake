# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# ITK's entry for the remote module: copy this file to Modules/Remote of an ITK source tree and configure ITK with
# -DModule_Chunkwise=ON and -DChunkwise_GIT_REPOSITORY=URL, the address of this repository. -DModule_Chunkwise_GIT_TAG=NAME chooses
# another branch, tag or commit.
#
# Compliance level 2 of ITK's scale of 0 to 5. The tests cover most of the code and pass on Linux x86-64 with ITK 5.2.1 and 5.4.3; the
# filters are wrapped for Python, and the style is ITK's. Level 3 asks for an interface that is mostly stable, which version 0.1 does
# not promise, and level 4 for Windows and macOS, which have not been tried.
if(Module_Chunkwise AND NOT Chunkwise_GIT_REPOSITORY)
  message(FATAL_ERROR "Chunkwise_GIT_REPOSITORY must be the address of Chunkwise's repository.")
endif()
itk_fetch_module(Chunkwise
  "Boundary-exact image filters that stream images larger than the memory of a GPU, on all GPUs of a machine or on the CPU."
  MODULE_COMPLIANCE_LEVEL 2
  GIT_REPOSITORY ${Chunkwise_GIT_REPOSITORY}
  GIT_TAG main
)
