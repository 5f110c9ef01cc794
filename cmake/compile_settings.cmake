# Flags for every target of this project, from the DUET_* options.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(DUET_CCACHE ccache)
  mark_as_advanced(DUET_CCACHE)
  if(DUET_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DUET_CCACHE})
  endif()
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -fdiagnostics-color=auto)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # g++ 12 warns of `"text" + std::string` when it inlines much (GCC bug 105651)
endif()
if(DUET_WERROR)
  add_compile_options(-Werror)
endif()

# __FILE__ is relative to the project, whoever builds it wherever.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

if(DUET_COVERAGE)
  # Atomic: what threads count together would else become negative now and then, which gcovr cannot read.
  add_compile_options(--coverage -fprofile-abs-path -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

if(DUET_SANITIZE)
  add_compile_options(-fsanitize=${DUET_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DUET_SANITIZE})
endif()

if(DUET_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "DUET_FUZZ needs clang++; the preset `fuzz` chooses it")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(DUET_STATIC_RUNTIME)
  if(BUILD_SHARED_LIBS)
    message(FATAL_ERROR "DUET_STATIC_RUNTIME is for programs: a shared libduet must share the runtime with its users")
  endif()
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

if(DUET_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(LANGUAGES CXX)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

# A third of a megabyte less to read and to relocate at each start.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  include(CheckLinkerFlag)
  check_linker_flag(CXX -Wl,-z,pack-relative-relocs DUET_PACKED_RELOCATIONS)
  if(DUET_PACKED_RELOCATIONS)
    add_link_options(-Wl,-z,pack-relative-relocs)
  endif()
endif()
