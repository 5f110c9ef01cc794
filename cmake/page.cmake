# The page of the HTTP door: what is served of web/ becomes a source file. Its tests are no part of it.

file(GLOB_RECURSE page_files RELATIVE ${PROJECT_SOURCE_DIR}/web CONFIGURE_DEPENDS web/*.html web/*.js web/*.css web/*.svg)
list(FILTER page_files EXCLUDE REGEX "^tests/|node_modules/|\\.test\\.js$")
set(page_source ${PROJECT_BINARY_DIR}/generated/page_files.cpp)
list(TRANSFORM page_files PREPEND ${PROJECT_SOURCE_DIR}/web/ OUTPUT_VARIABLE page_paths)
add_custom_command(
  OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -D FOLDER=${PROJECT_SOURCE_DIR}/web "-DFILES=${page_files}" -D OUTPUT=${page_source} -P
          ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${page_paths} cmake/embed_page.cmake
  COMMENT "Embedding web/"
  VERBATIM)
set_source_files_properties(${page_source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
