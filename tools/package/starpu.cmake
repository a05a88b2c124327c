# StarPU in the installed tree, unless it is where the loader and pkg-config look by themselves: what is installed then
# stands alone, wherever it is moved, and whatever becomes of the folder in which tools/setup keeps the StarPU it built.

pkg_get_variable(starpu_prefix starpu-1.4 prefix)
pkg_get_variable(starpu_libdir starpu-1.4 libdir)
pkg_get_variable(starpu_includedir starpu-1.4 starpu_includedir)
if(starpu_prefix IN_LIST CMAKE_SYSTEM_PREFIX_PATH)
  set(starpu_elsewhere OFF)
else()
  set(starpu_elsewhere ON)
endif()
option(ASTERISM_INSTALL_STARPU "Install StarPU too" ${starpu_elsewhere})
if(NOT ASTERISM_INSTALL_STARPU)
  set(starpu_is_in "${ASTERISM_STARPU_PREFIX}")
  return()
endif()
set(starpu_is_in "\${asterism_PREFIX}")

install(DIRECTORY ${starpu_libdir}/ DESTINATION ${CMAKE_INSTALL_LIBDIR} USE_SOURCE_PERMISSIONS
  FILES_MATCHING PATTERN "libstarpu*.so*" PATTERN modules EXCLUDE PATTERN pkgconfig EXCLUDE)
install(DIRECTORY ${starpu_includedir}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/starpu/1.4 FILES_MATCHING PATTERN "*.h")
install(PROGRAMS ${starpu_prefix}/bin/starpu_fxt_tool DESTINATION ${CMAKE_INSTALL_BINDIR})  # for traces
install(FILES ${starpu_prefix}/share/doc/starpu/COPYING.LGPL DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/starpu OPTIONAL)

foreach(module starpu-1.4 starpumpi-1.4)
  file(READ ${starpu_libdir}/pkgconfig/${module}.pc text)
  string(REGEX REPLACE "\nprefix=[^\n]*" "\nprefix=\${pcfiledir}/${prefix_from_pkgconfig}" text "${text}")
  string(REGEX REPLACE "\nlibdir=[^\n]*" "\nlibdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}" text "${text}")
  string(REGEX REPLACE "\nincludedir=[^\n]*" "\nincludedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}" text "${text}")
  file(WRITE ${PROJECT_BINARY_DIR}/package/${module}.pc "${text}")
  install(FILES ${PROJECT_BINARY_DIR}/package/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# What was linked to StarPU where it was built looks for it beside itself from now on.
function(find_starpu_beside file from_file_to_libdir)
  install(CODE "file(GLOB files \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")
foreach(file IN LISTS files)
  if(NOT IS_SYMLINK \"\${file}\")
    file(RPATH_CHANGE FILE \"\${file}\" OLD_RPATH \"${starpu_libdir}\" NEW_RPATH [[${from_file_to_libdir}]])
  endif()
endforeach()")
endfunction()
file(RELATIVE_PATH libdir_from_bindir /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
find_starpu_beside(${CMAKE_INSTALL_LIBDIR}/libstarpumpi-1.4.so.* "$ORIGIN")
find_starpu_beside(${CMAKE_INSTALL_BINDIR}/starpu_fxt_tool "$ORIGIN/${libdir_from_bindir}")
find_starpu_beside(${CMAKE_INSTALL_BINDIR}/asterism "$ORIGIN/${libdir_from_bindir}")
if(BUILD_SHARED_LIBS)
  find_starpu_beside(${CMAKE_INSTALL_LIBDIR}/libasterism.so.* "$ORIGIN")
endif()
