# One program with every src/**/*_test.cpp; without the program those of the toolkit. With DUET_TEST_FOLDERS those there, which
# may be tests of the toolkit and of the rooms only: the rest is not built then. Each test case is a ctest case with the label
# `unit`; with a sanitizer each eighth of them is one.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)
include(GoogleTest)

file(GLOB_RECURSE unit_test_sources CONFIGURE_DEPENDS src/*_test.cpp)
if(NOT DUET_PROGRAM)
  list(FILTER unit_test_sources INCLUDE REGEX "/src/duet/")
endif()
if(DUET_TEST_FOLDERS)
  list(FILTER unit_test_sources INCLUDE REGEX "/src/(${DUET_TEST_FOLDERS})")
endif()
if(unit_test_sources)
  add_executable(unit_tests ${unit_test_sources})
  set(tested $<TARGET_NAME_IF_EXISTS:duet_program>)
  if(DUET_TEST_FOLDERS)
    set(tested $<TARGET_NAME_IF_EXISTS:duet_patient_rooms>)
  endif()
  target_link_libraries(unit_tests PRIVATE duet_internal ${tested} rapidcheck GTest::gtest GTest::gtest_main)
  if(unit_test_sources MATCHES "/src/simulate/")
    target_link_libraries(unit_tests PRIVATE duet_simulate)
  endif()
  if(DUET_SANITIZE)
    # What is tested is optimised, the tests and the simulator are not: they take a third of the time to compile.
    target_compile_options(unit_tests PRIVATE -O0)
    if(TARGET duet_simulate)
      target_compile_options(duet_simulate PRIVATE -O0)
    endif()
  endif()
  duet_precompile(unit_tests <gtest/gtest.h>)
  duet_compile_together(unit_tests)
  # Together with others of their folder only: a new file moves the bounds of its own folder alone. Those that use a name of their
  # neighbours stand by themselves.
  set_target_properties(unit_tests PROPERTIES UNITY_BUILD_MODE GROUP)
  set(test_files_alone
      app/doors/login
      app/mcp/print_config
      app/mcp/task_answers
      app/settings/settings
      app/stdio/running_program
      app/top/layout
      app/view/table
      app/view/task_columns
      automation/cron
      automation/work
      bridge/silence_clock
      duet/framing/recovery
      duet/framing/splits
      duet/framing/websocket
      duet/peer/client
      duet/peer/mcp_protocol
      duet/peer/reply
      duet/peer/typed_method
      duet/rpc/json
      duet/rpc/json_read
      duet/rpc/json_scan
      duet/rpc/json_write
      duet/rpc/message
      duet/rpc/params
      duet/rpc/scalar_scan
      duet/rpc/schema
      duet/transport/loop
      duet/transport/memory
      duet/transport/sentinel
      duet/transport/stdio
      duet/transport/unix_acceptor
      pattern/regex
      task/keeper
      task/keeper_core
      task/keeper_faults
      task/keeper_lease
      task/keeper_tree
      task/output
      task/postgres/link)
  foreach(file IN LISTS unit_test_sources)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src ${file})
    string(REGEX REPLACE "_test\\.cpp$" "" name ${name})
    if(NOT name IN_LIST test_files_alone)
      cmake_path(GET name PARENT_PATH folder)
      math(EXPR count_${folder} "0${count_${folder}} + 1")
      math(EXPR part "(${count_${folder}} - 1) / 8")
      string(MAKE_C_IDENTIFIER "${folder}_${part}" group)
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  target_compile_definitions(unit_tests PRIVATE DUET_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TARGET duet-rpc AND NOT DUET_TEST_FOLDERS)
    target_compile_definitions(unit_tests PRIVATE DUET_RPC_PROGRAM="$<TARGET_FILE:duet-rpc>")
    add_dependencies(unit_tests duet-rpc)
  endif()
  if(DUET_SANITIZE)
    # A sanitized program takes longer to start than most cases take.
    foreach(shard RANGE 7)
      add_test(
        NAME unit.shard_${shard}
        COMMAND unit_tests --gtest_brief=1
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      set_tests_properties(
        unit.shard_${shard} PROPERTIES LABELS unit COST 1000 TIMEOUT 1800 ENVIRONMENT
                                       "GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  else()
    gtest_discover_tests(
      unit_tests
      DISCOVERY_MODE PRE_TEST
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      PROPERTIES LABELS unit)
  endif()
endif()
