# What is installed beside the program: shell completions and the manual page. The program writes them itself, so they are
# made only where it can be run as it is.

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
add_custom_target(duet_share_files ALL DEPENDS ${duet_share_files})
