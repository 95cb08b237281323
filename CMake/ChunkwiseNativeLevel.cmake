# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
include(CheckCXXSourceRuns)

# chunkwise_find_native_level(RESULT): the best of the levels of CHUNKWISE_CPU_LEVELS that this machine has; empty if
# none. See FindLevel in chunkwiseCpuLevel.cxx.
function(chunkwise_find_native_level result)
  set(CMAKE_REQUIRED_QUIET ON)
  set(features_AVX2 avx2 fma)
  set(features_AVX512 ${features_AVX2} avx512f avx512bw avx512vl avx512dq)
  set(${result} PARENT_SCOPE)
  foreach(level AVX2 AVX512)
    set(conditions ${features_${level}})
    list(TRANSFORM conditions REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")")
    list(JOIN conditions " && " condition)
    check_cxx_source_runs("int main() { return ${condition} ? 0 : 1; }" CHUNKWISE_MACHINE_HAS_${level})
    if(CHUNKWISE_MACHINE_HAS_${level})
      set(${result} ${level} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
