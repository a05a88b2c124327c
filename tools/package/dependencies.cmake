# Everything that Asterism stands on. Imported targets count as system headers: their warnings are not ours.

# --- CUDA ----------------------------------------------------------------------------------------------------------------

set(ASTERISM_WITH_CUDA OFF)
if(ASTERISM_CUDA)  # AUTO or ON
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(ASTERISM_NVCC nvcc PATHS /usr/local/cuda/bin)  # the toolkit's installer leaves PATH alone
    mark_as_advanced(ASTERISM_NVCC)
    if(ASTERISM_NVCC)
      set(CMAKE_CUDA_COMPILER ${ASTERISM_NVCC})
    endif()
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(ASTERISM_WITH_CUDA ON)
  elseif(NOT ASTERISM_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "ASTERISM_CUDA is ${ASTERISM_CUDA}, but no CUDA compiler works here")
  endif()
endif()
if(ASTERISM_WITH_CUDA)
  if(NOT DEFINED ENV{CUDAARCHS})  # CMake's own way to say it otherwise
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU code for 8.0 and 9.0, PTX for what comes after")
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # the one that StarPU uses: two CUDA runtimes in a process share nothing
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has had it since 12.0
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
endif()

# --- StarPU, FFTW, hwloc, METIS, MPI -------------------------------------------------------------------------------------

find_package(PkgConfig REQUIRED)
if(NOT ASTERISM_STARPU_PREFIX STREQUAL ASTERISM_STARPU_PREFIX_BEFORE)  # pkg-config's answers would be those of before
  get_cmake_property(cached CACHE_VARIABLES)
  list(FILTER cached INCLUDE REGEX "^(__pkg_config_checked_|pkgcfg_lib_)?StarPU(_|$)")
  foreach(answer IN LISTS cached)
    unset(${answer} CACHE)
  endforeach()
  set(ASTERISM_STARPU_PREFIX_BEFORE "${ASTERISM_STARPU_PREFIX}" CACHE INTERNAL "")
endif()
if(ASTERISM_STARPU_PREFIX)
  list(PREPEND CMAKE_PREFIX_PATH ${ASTERISM_STARPU_PREFIX})  # where pkg-config looks first
endif()
pkg_check_modules(StarPU IMPORTED_TARGET "starpu-1.4>=1.4" starpumpi-1.4)
if(NOT StarPU_FOUND)
  message(FATAL_ERROR "pkg-config finds no StarPU >= 1.4 with MPI. tools/run and tools/test get it by themselves; for a "
    "build by hand:\n  cmake --preset release -DASTERISM_STARPU_PREFIX=$(tools/setup --prefix)")
endif()
if(ASTERISM_WITH_CUDA)
  pkg_get_variable(starpu_headers starpu-1.4 starpu_includedir)
  file(STRINGS ${starpu_headers}/starpu_config.h starpu_cuda REGEX "^#define STARPU_USE_CUDA ")
  if(NOT starpu_cuda)
    message(FATAL_ERROR "This StarPU (${starpu_headers}) was built without CUDA; configure with -DASTERISM_CUDA=OFF or use "
      "the one that tools/setup builds")
  endif()
endif()
pkg_check_modules(FFTW REQUIRED IMPORTED_TARGET fftw3 fftw3f)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(ZIP IMPORTED_TARGET libzip)  # the program's alone, for SciPy's .npz, which it can do without
pkg_check_modules(PETSC QUIET IMPORTED_TARGET PETSc)  # a benchmark's alone: Debian's libpetsc-real-dev
find_library(ASTERISM_METIS metis)  # it has neither a CMake package nor a pkg-config file
find_path(ASTERISM_METIS_INCLUDE_DIR metis.h)
if(NOT ASTERISM_METIS OR NOT ASTERISM_METIS_INCLUDE_DIR)
  message(FATAL_ERROR "METIS is missing; tools/setup installs it (Debian's libmetis-dev)")
endif()
mark_as_advanced(ASTERISM_METIS ASTERISM_METIS_INCLUDE_DIR)
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface alone
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)

# --- Header libraries ----------------------------------------------------------------------------------------------------

# Finds PACKAGE's CMake TARGET, or makes it from HEADER alone where only the header is there.
function(asterism_header_library package target header)
  find_package(${package} QUIET)
  if(NOT TARGET ${target})
    find_path(ASTERISM_${package}_INCLUDE_DIR ${header} PATH_SUFFIXES eigen3)
    if(NOT ASTERISM_${package}_INCLUDE_DIR)
      message(FATAL_ERROR "${package} is missing: there is no ${header}; tools/setup installs it")
    endif()
    mark_as_advanced(ASTERISM_${package}_INCLUDE_DIR)
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} INTERFACE ${ASTERISM_${package}_INCLUDE_DIR})
  endif()
endfunction()

asterism_header_library(CLI11 CLI11::CLI11 CLI/CLI.hpp)
asterism_header_library(Eigen3 Eigen3::Eigen Eigen/Core)
asterism_header_library(nlohmann_json nlohmann_json::nlohmann_json nlohmann/json.hpp)
if(ASTERISM_TESTS)
  asterism_header_library(doctest doctest::doctest doctest/doctest.h)
endif()
find_package(fmt QUIET)
if(TARGET fmt::fmt)
  set(ASTERISM_FMT fmt::fmt)
else()
  asterism_header_library(fmt fmt::fmt-header-only fmt/format.h)
  target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
  set(ASTERISM_FMT $<BUILD_INTERFACE:fmt::fmt-header-only>)
endif()
