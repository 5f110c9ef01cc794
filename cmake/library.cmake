# libduet: the toolkit, everything under src/duet that is not a test. It needs Boost.JSON and threads, and nothing else.
#
# duet is what is installed, static or, with BUILD_SHARED_LIBS, shared. duet_internal is what the program and the tests
# link: always static, since they use what the shared library hides.

# The static library goes with static Boost, so that programs need no more at run time than they must.
if(NOT BUILD_SHARED_LIBS)
  set(Boost_USE_STATIC_LIBS ON)
endif()
find_package(Threads REQUIRED)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS json)

# What users may include, and what that includes in turn. All else is not installed.
set(duet_public_headers
    duet/api.h
    duet/base/activity.h
    duet/base/clock.h
    duet/base/fd.h
    duet/base/log.h
    duet/base/log_line.h
    duet/base/log_sink.h
    duet/base/quiet_writer.h
    duet/base/result.h
    duet/base/unique_function.h
    duet/base/utc_text.h
    duet/duet.h
    duet/peer/announcement.h
    duet/peer/client.h
    duet/peer/connection.h
    duet/peer/conversation.h
    duet/peer/method.h
    duet/peer/methods.h
    duet/peer/outcome.h
    duet/peer/protocol.h
    duet/peer/reply.h
    duet/peer/server.h
    duet/peer/typed_method.h
    duet/rpc/error.h
    duet/rpc/initialisers.h
    duet/rpc/json.h
    duet/rpc/json_read.h
    duet/rpc/json_scan.h
    duet/rpc/json_text.h
    duet/rpc/json_write.h
    duet/rpc/params.h
    duet/rpc/schema.h
    duet/rpc/types.h
    duet/rpc/utf8.h
    duet/rpc/value.h
    duet/transport/acceptor.h
    duet/transport/channel.h
    duet/transport/fd_channel.h
    duet/transport/loop.h
    duet/transport/mailbox.h
    duet/transport/memory.h
    duet/transport/sentinel.h
    duet/transport/stdio.h
    duet/transport/tcp_acceptor.h
    duet/transport/tcp_address.h
    duet/transport/unix_acceptor.h
    duet/transport/unix_socket.h)

configure_file(src/duet/version.h.in generated/duet/version.h @ONLY)
file(GLOB_RECURSE duet_sources CONFIGURE_DEPENDS src/duet/*.cpp)
list(FILTER duet_sources EXCLUDE REGEX "_test\\.cpp$")

function(duet_add_library target)
  add_library(${target} ${ARGN} ${duet_sources})
  target_link_libraries(${target} PUBLIC Boost::json Threads::Threads)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(DUET_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The installed libduet.a must also link with other compilers, so it carries machine code as well.
    target_compile_options(${target} PRIVATE -ffat-lto-objects)
  endif()
  duet_precompile(${target})
  duet_compile_together(${target})
endfunction()

duet_add_library(duet)
add_library(duet::duet ALIAS duet)
# Until 1.0 a new minor version is a new interface.
set_target_properties(duet PROPERTIES VERSION ${PROJECT_VERSION}
                                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

if(BUILD_SHARED_LIBS)
  duet_add_library(duet_internal STATIC EXCLUDE_FROM_ALL)
else()
  add_library(duet_internal ALIAS duet)
endif()
