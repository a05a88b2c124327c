# What `cmake --install` installs: the library, its public headers, the program, the script that plots what it writes,
# examples, a CMake package, a pkg-config file, and StarPU. The tree can be moved.

include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/asterism)
install(TARGETS asterism EXPORT asterism_targets)
install(TARGETS asterism_program)
install(PROGRAMS tools/plot DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME asterism-plot)
install(DIRECTORY tests/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/asterism/examples PATTERN install_and_use EXCLUDE)
install(DIRECTORY runtime codelets algorithms DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/asterism
  FILES_MATCHING PATTERN "*.hpp" PATTERN kept EXCLUDE REGEX "/runtime/(ranks|run|tasks|tiles|workers)$" EXCLUDE
  REGEX "/runtime/hardware/(cores|control_groups).hpp$" EXCLUDE)
install(EXPORT asterism_targets NAMESPACE asterism:: FILE asterism-targets.cmake DESTINATION ${package_folder})

file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
include(tools/package/starpu.cmake)

configure_package_config_file(tools/package/asterism-config.cmake.in asterism-config.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(asterism-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/asterism-config.cmake ${PROJECT_BINARY_DIR}/asterism-config-version.cmake
  tools/package/asterism-cuda.cmake
  DESTINATION ${package_folder})

# A shared library brings its own dependencies along (.private), but for CUDA's runtime, which users' kernels call; who links
# the static one must name them all, with or without pkg-config's --static.
set(modules starpumpi-1.4 starpu-1.4 hwloc fftw3 fftw3f)
if(ASTERISM_FMT STREQUAL "fmt::fmt")
  list(APPEND modules fmt)
endif()
list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX mpi_cxx)  # MPI's C interface alone is used
set(libraries ${MPI_CXX_LIBRARIES} -lmetis ${CMAKE_THREAD_LIBS_INIT} -l${CMAKE_DL_LIBS} -lstdc++ -lm)
if(ASTERISM_WITH_CUDA)
  set(cuda_runtime -L${CUDAToolkit_LIBRARY_DIR} -Wl,-rpath,${CUDAToolkit_LIBRARY_DIR} -lcudart)
  list(APPEND libraries -lcufft)
  set(definitions -DASTERISM_WITH_CUDA=1)
endif()
list(JOIN modules " " modules)
list(JOIN libraries " " libraries)
list(JOIN cuda_runtime " " cuda_runtime)
set(library "-L\${libdir} -Wl,-rpath,\${libdir} -lasterism")
if(BUILD_SHARED_LIBS)
  set(dependencies "Requires.private: ${modules}\nLibs: ${library} ${cuda_runtime}\nLibs.private: ${libraries}")
else()
  set(dependencies "Requires: ${modules}\nLibs: ${library} ${libraries} ${cuda_runtime}")
endif()
configure_file(tools/package/asterism.pc.in asterism.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/asterism.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
