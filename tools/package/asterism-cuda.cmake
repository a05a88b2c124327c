# asterism_cuda_sources(TARGET FILE...)
#
# Adds source files with CUDA kernels to a target. Where Asterism has CUDA they are compiled by nvcc, whatever they are
# called: as C++20, for the GPUs that Asterism was built for, unless CMAKE_CUDA_ARCHITECTURES or CUDAARCHS say which. Where
# it has not, they are C++ like others, and .cu files are left out. Not to be called in a function: CMake enables languages
# in files alone.
macro(asterism_cuda_sources target)
  if(asterism_CUDA)
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
      set(CMAKE_CUDA_COMPILER ${asterism_CUDA_COMPILER})
    endif()
    if(NOT DEFINED ENV{CUDAARCHS})
      set(CMAKE_CUDA_ARCHITECTURES "${asterism_CUDA_ARCHITECTURES}" CACHE STRING "The GPUs to compile for")
    endif()
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has had it since 12.0
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
  endif()
  asterism_add_cuda_sources_to(${target} ${ARGN})
endmacro()

function(asterism_add_cuda_sources_to target)
  foreach(file IN LISTS ARGN)
    if(asterism_CUDA OR NOT file MATCHES "[.]cu$")
      target_sources(${target} PRIVATE ${file})
    endif()
  endforeach()
  if(NOT asterism_CUDA)
    return()
  endif()
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA)
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF)
  foreach(property CUDA_ARCHITECTURES CUDA_COMPILER_LAUNCHER)  # the target may be older than the language
    get_target_property(given ${target} ${property})
    if(NOT given AND DEFINED CMAKE_${property})
      set_target_properties(${target} PROPERTIES ${property} "${CMAKE_${property}}")
    endif()
  endforeach()
endfunction()
