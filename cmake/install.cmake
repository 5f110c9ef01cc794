# cmake --install: the library with its public headers, find_package(duet) and pkg-config files, its guide and its examples;
# the program if it is built.

include(CMakePackageConfigHelpers)

set(duet_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/duet)

install(TARGETS duet EXPORT duetTargets)
foreach(header ${duet_public_headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES src/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/duet/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/duet)

install(EXPORT duetTargets NAMESPACE duet:: DESTINATION ${duet_package_dir})
configure_package_config_file(packaging/duetConfig.cmake.in duetConfig.cmake INSTALL_DESTINATION ${duet_package_dir})
write_basic_package_version_file(duetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/duetConfig.cmake ${PROJECT_BINARY_DIR}/duetConfigVersion.cmake
        DESTINATION ${duet_package_dir})

# Relative, so that the prefix may be moved or chosen at install time.
file(RELATIVE_PATH duet_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# Values of Boost.JSON are part of the interface. What that needs itself, the linker of a shared one knows.
set(duet_pc_boost "-lboost_json")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND duet_pc_boost " -lboost_container")
endif()
configure_file(packaging/duet.pc.in duet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/duet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The guide and the examples. Installed, they stand side by side, which the guide's links have to follow.
set(duet_doc_dir ${CMAKE_INSTALL_DATADIR}/doc/duet)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/library.md)
file(READ docs/library.md duet_guide)
string(REPLACE "](../examples/" "](examples/" duet_guide "${duet_guide}")
file(WRITE ${PROJECT_BINARY_DIR}/library.md "${duet_guide}")
install(FILES ${PROJECT_BINARY_DIR}/library.md DESTINATION ${duet_doc_dir})
install(DIRECTORY examples/ DESTINATION ${duet_doc_dir}/examples USE_SOURCE_PERMISSIONS)

if(TARGET duet-rpc)
  install(TARGETS duet-rpc)
  if(DUET_INSTALL_AIWG)
    install(FILES $<TARGET_FILE_DIR:duet-rpc>/aiwg TYPE BIN)
  endif()
  include(cmake/app_install.cmake OPTIONAL)
  # Units for `systemctl --user`, a daemon for each project. It looks into share/ of ~/.local, /usr/local and /usr alike.
  # What they start is known at install time only.
  install(
    CODE "
    cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_PREFIX NORMALIZE OUTPUT_VARIABLE prefix)
    cmake_path(APPEND prefix \"${CMAKE_INSTALL_BINDIR}\" OUTPUT_VARIABLE duet_bindir)
    configure_file(\"${PROJECT_SOURCE_DIR}/packaging/systemd/duet-rpc@.service.in\"
                   \"${PROJECT_BINARY_DIR}/duet-rpc@.service\" @ONLY)")
  install(FILES ${PROJECT_BINARY_DIR}/duet-rpc@.service packaging/systemd/duet-rpc@.socket
                packaging/systemd/duet-rpc-http@.socket
                packaging/systemd/duet-rpc-tls@.socket
          DESTINATION ${CMAKE_INSTALL_DATADIR}/systemd/user)
endif()
