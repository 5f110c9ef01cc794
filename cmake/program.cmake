# The program duet-rpc and the simulator. Everything under src but src/duet and the main programs is compiled once and
# shared with the tests; the rooms that the simulator runs stand apart, so that it is built without the rest. What is slow by
# itself (a person reads it, or a database answers) is optimised for size.

file(GLOB_RECURSE room_sources CONFIGURE_DEPENDS src/process/*.cpp src/task/*.cpp src/pattern/*.cpp src/automation/*.cpp
     src/app/daemon/event_hub.cpp)
file(GLOB_RECURSE program_sources CONFIGURE_DEPENDS src/app/*.cpp src/bridge/*.cpp)
list(FILTER room_sources EXCLUDE REGEX "_test\\.cpp$")
list(FILTER program_sources EXCLUDE REGEX "_test\\.cpp$|/src/app/main\\.cpp$|/src/app/daemon/event_hub\\.cpp$")
set(patient_rooms ${room_sources})
list(FILTER patient_rooms INCLUDE REGEX "/src/(automation|task/postgres)/")
list(FILTER room_sources EXCLUDE REGEX "/src/(automation|task/postgres)/")
set(patient_app "/src/app/(certificates|cli|client|commands|doctor|project|settings|top|view|words)/")
set(patient_sources ${program_sources})
list(FILTER patient_sources INCLUDE REGEX ${patient_app})
list(FILTER program_sources EXCLUDE REGEX ${patient_app})
find_package(SQLite3 REQUIRED)
# Linked into the program: what is loaded at each start of a command is paid for by each command.
find_library(DUET_SQLITE_STATIC libsqlite3.a)
find_library(DUET_RE2 NAMES libre2.a re2 REQUIRED)
find_library(DUET_CMARK NAMES libcmark.a cmark REQUIRED)
find_library(DUET_NETTLE NAMES libnettle.a nettle REQUIRED)
find_library(DUET_CURSES NAMES libncursesw.a ncursesw REQUIRED)
find_library(DUET_TERMINFO NAMES libtinfo.a tinfo REQUIRED)
include(cmake/schema.cmake)
# duet_for_size(target): optimises for size where the build optimises at all.
function(duet_for_size target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -Os)
  endif()
  duet_precompile(${target})
  duet_compile_together(${target})
endfunction()
add_library(duet_rooms STATIC ${room_sources})
add_library(duet_patient_rooms STATIC ${patient_rooms} ${schema_source})
target_link_libraries(duet_patient_rooms PUBLIC duet_rooms)
duet_for_size(duet_patient_rooms)
target_link_libraries(
  duet_rooms PUBLIC duet_internal $<IF:$<BOOL:${DUET_SQLITE_STATIC}>,${DUET_SQLITE_STATIC},SQLite::SQLite3> ${DUET_RE2}
                    ${CMAKE_DL_LIBS} m)
duet_precompile(duet_rooms)
duet_compile_together(duet_rooms)
include(cmake/page.cmake)
add_library(duet_program OBJECT ${program_sources} ${page_source})
add_library(duet_patient STATIC ${patient_sources})
target_link_libraries(duet_patient PUBLIC duet_patient_rooms ${DUET_CMARK} ${DUET_NETTLE} ${DUET_CURSES} ${DUET_TERMINFO})
target_link_libraries(duet_program PUBLIC duet_patient)
duet_for_size(duet_patient)
# The macros of curses.h are for one file only.
set_source_files_properties(src/app/top/screen.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_compile_definitions(duet_patient PUBLIC $<$<BOOL:${DUET_TEST_METHODS}>:DUET_TEST_METHODS>)
duet_precompile(duet_program)
duet_compile_together(duet_program)
add_executable(duet-rpc src/app/main.cpp)
target_link_libraries(duet-rpc PRIVATE duet_internal duet_program)
if(DUET_LTO)  # names of type information, a thirtieth of the file; those of functions stay, for the stack in last words
  add_custom_command(
    TARGET duet-rpc
    POST_BUILD
    COMMAND ${CMAKE_OBJCOPY} --wildcard --strip-symbol=_ZT[ISVTC]* $<TARGET_FILE:duet-rpc>
    VERBATIM)
endif()
# The same program under its other name.
add_custom_command(
  TARGET duet-rpc
  POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E create_symlink duet-rpc aiwg
  WORKING_DIRECTORY $<TARGET_FILE_DIR:duet-rpc>
  VERBATIM)

# The simulator. All but its main program is shared with its tests.
file(GLOB_RECURSE simulate_sources CONFIGURE_DEPENDS src/simulate/*.cpp)
list(FILTER simulate_sources EXCLUDE REGEX "_test\\.cpp$|/src/simulate/main\\.cpp$|/src/simulate/system_calls\\.cpp$")
add_library(duet_simulate OBJECT EXCLUDE_FROM_ALL ${simulate_sources})
target_link_libraries(duet_simulate PUBLIC duet_patient_rooms)
duet_precompile(duet_simulate)
duet_compile_together(duet_simulate)
add_executable(duet-simulate EXCLUDE_FROM_ALL src/simulate/main.cpp src/simulate/system_calls.cpp)
target_link_libraries(duet-simulate PRIVATE duet_simulate)
