# The CUDA toolkit, where there is one. Nothing here is required: without it there are no GPU kernels, and
# `--device cuda:N` says so.
set(TROUPE_CUDA "AUTO" CACHE STRING "GPU kernels: AUTO builds them where nvcc is found, OFF never")
set(TROUPE_CUDA_ARCHITECTURES "all-major" CACHE STRING "GPUs that the kernels are built for (nvcc -arch)")
if(TROUPE_CUDA STREQUAL "OFF")
  foreach(found TROUPE_NVCC TROUPE_CUDA_INCLUDE TROUPE_NCCL_INCLUDE)
    set(${found} "") # also where an earlier run has found it
  endforeach()
else()
  find_program(TROUPE_NVCC nvcc HINTS ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  find_path(TROUPE_CUDA_INCLUDE cuda_runtime_api.h PATHS /usr/local/cuda PATH_SUFFIXES include)
  find_path(TROUPE_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda PATH_SUFFIXES include)
endif()

# troupe_cuda_module(NAME SOURCE [HEADERS...]): a shared module lib/libNAME.so from one CUDA file; no target
# where nvcc is absent. nvcc is called by itself, not as a language of the project: the warnings and the
# instruction set that every other file is compiled with are not its own.
function(troupe_cuda_module name source)
  cmake_parse_arguments(MODULE "" "" "HEADERS" ${ARGN})
  if(NOT TROUPE_NVCC)
    return()
  endif()
  set(module ${CMAKE_BINARY_DIR}/lib/lib${name}.so)
  add_custom_command(OUTPUT ${module}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/lib
    # No fused multiply-add, IEEE division and root, no flushing: the bits of the CPU's plain code. constexpr
    # functions are both sides'.
    COMMAND ${TROUPE_NVCC} -shared -O3 -std=c++20 -arch=${TROUPE_CUDA_ARCHITECTURES} --cudart=shared
            --expt-relaxed-constexpr
            -fmad=false -prec-div=true -prec-sqrt=true -ftz=false
            -Xcompiler=-fPIC,-Wall,-Wextra,-ffp-contract=off,-fvisibility=default
            -I${CMAKE_SOURCE_DIR} -o ${module} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
    DEPENDS ${source} ${MODULE_HEADERS}
    COMMENT "Building GPU kernels lib${name}.so"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${module})
endfunction()
