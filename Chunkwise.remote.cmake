# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
#
# ITK's entry for the remote module: copy this file to Modules/Remote of an ITK source tree and configure ITK with
# -DModule_Chunkwise=ON and -DChunkwise_GIT_REPOSITORY=URL, the address of this repository. -DModule_Chunkwise_GIT_TAG=NAME chooses
# another branch, tag or commit.
#
# ITK asks for a hash as the tag: put that of the release in the place of "main" when the entry is sent to ITK.
#
#-- # Grading Level Criteria Report
#-- EVALUATION DATE: 2026-11-28
#-- EVALUATORS: [The Chunkwise Contributors]
#--
#-- ## Compliance level 5 star (AKA ITK main modules, or remote modules that could become core modules)
#--   - [ ] Widespread community dependance
#--   - [ ] Above 90% code coverage
#--   - [ ] CI dashboards and testing monitored rigorously
#--   - [X] Key API features are exposed in wrapping interface
#--   - [ ] All requirements of Levels 4,3,2,1
#--
#-- ## Compliance Level 4 star (Very high-quality code, perhaps small community dependance)
#--   - [X] Meets all ITK code style standards
#--   - [X] No external requirements beyond those needed by ITK proper
#--   - [ ] Builds and passes tests on all supported platforms within 1 month of each core tagged release
#--            - [ ] Windows Shared Library Build with Visual Studio
#--            - [ ] Mac with clang compiller
#--            - [X] Linux with gcc compiler
#--   - [ ] Active developer community dedicated to maintaining code-base
#--   - [ ] 75% code coverage demonstrated for testing suite
#--   - [X] Continuous integration testing performed
#--   - [ ] All requirements of Levels 3,2,1
#--
#-- ## Compliance Level 3 star (Quality beta code)
#--   - [ ] API | executable interface is considered mostly stable and feature complete
#--   - [X] 10% C0-code coverage demonstrated for testing suite
#--   - [X] Some tests exist and pass on at least some platform
#--   - [X] All requirements of Levels 2,1
#--
#-- ## Compliance Level 2 star (Alpha code feature API development or niche community/execution environment dependance )
#--   - [X] Compiles for at least 1 niche set of execution envirionments, and perhaps others
#--   - [X] All requirements of Levels 1
#--
#-- ## Compliance Level 1 star (Pre-alpha features under development and code of unknown quality)
#--   - [X] Code complies on at least 1 platform
#--
#-- ## Compliance Level 0 star ( Code/Feature of known poor-quality or deprecated status )
#--   - [ ] Code reviewed and explicitly identified as not recommended for use
#--
#-- ### Please document here any justification for the criteria above
#       Tests pass on Linux x86-64 with ITK 5.2.1 and 5.4.3. The style is ITK's clang-format. CUDA and all libraries of the program are
#       optional. Level 3 asks for a mostly stable interface, which version 0.2 does not promise; Windows and macOS have not been tried.
if(Module_Chunkwise AND NOT Chunkwise_GIT_REPOSITORY)
  message(FATAL_ERROR "Chunkwise_GIT_REPOSITORY must be the address of Chunkwise's repository.")
endif()
itk_fetch_module(Chunkwise
  "Boundary-exact image filters that stream images larger than the memory of a GPU, on all GPUs of a machine or on the CPU."
  MODULE_COMPLIANCE_LEVEL 2
  GIT_REPOSITORY ${Chunkwise_GIT_REPOSITORY}
  GIT_TAG main
)
