# What is installed beside the program: shell completions, manual pages and the documentation. The program writes some of
# them itself, so they are made only where it can be run as it is.

if(CMAKE_CROSSCOMPILING OR DUET_SANITIZE)
  return()
endif()

set(duet_share ${PROJECT_BINARY_DIR}/share)
set(duet_share_files)

# Runs the program with ARGN, keeps what it prints in share/FILE, and installs that into FOLDER of the data directory.
function(duet_install_printed file folder)
  set(made ${duet_share}/${file})
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${duet_share}
    COMMAND duet-rpc ${ARGN} > ${made}
    DEPENDS duet-rpc
    VERBATIM)
  install(FILES ${made} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
  set(duet_share_files ${duet_share_files} ${made} PARENT_SCOPE)
endfunction()

# bash looks for the command's own name, zsh for one with an underscore before it.
duet_install_printed(duet-rpc bash-completion/completions completion bash)
duet_install_printed(_duet-rpc zsh/site-functions completion zsh)
duet_install_printed(duet-rpc.fish fish/vendor_completions.d completion fish)
duet_install_printed(duet-rpc.1 man/man1 print manual)

# The pages of docs/, and manual pages of two of them, which a script makes.
# Installed, they stand side by side, which their links have to follow; the library's guide has a folder of its own.
set(duet_pages_dir ${CMAKE_INSTALL_DATADIR}/doc/duet-rpc)
install(DIRECTORY docs/ DESTINATION ${duet_pages_dir} FILES_MATCHING PATTERN "*.md" PATTERN "*.png"
        PATTERN library.md EXCLUDE)
install(FILES ARCHITECTURE.md CONTRIBUTING.md LICENSE DESTINATION ${duet_pages_dir})
foreach(page README.md CHANGELOG.md)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} duet_page)
  string(REPLACE "](docs/library.md" "](../duet/library.md" duet_page "${duet_page}")
  string(REPLACE "](docs/" "](" duet_page "${duet_page}")
  file(WRITE ${duet_share}/${page} "${duet_page}")
  install(FILES ${duet_share}/${page} DESTINATION ${duet_pages_dir})
endforeach()

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
function(duet_install_manual page name section summary)
  set(made ${duet_share}/${name}.${section})
  set(script ${PROJECT_SOURCE_DIR}/scripts/man_page)
  set(source ${PROJECT_SOURCE_DIR}/docs/${page})
  add_custom_command(
    OUTPUT ${made}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${duet_share}
    COMMAND Python3::Interpreter -B ${script} ${source} ${name} ${section} ${PROJECT_VERSION} ${summary} > ${made}
    DEPENDS ${script} ${source}
    VERBATIM)
  install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  set(duet_share_files ${duet_share_files} ${made} PARENT_SCOPE)
endfunction()
duet_install_manual(settings.md duet-rpc-settings 5 "the settings of duet-rpc")
duet_install_manual(tasks.md duet-rpc-tasks 7 "tasks of duet-rpc: how they live, and what is promised")
add_custom_target(duet_share_files ALL DEPENDS ${duet_share_files})
