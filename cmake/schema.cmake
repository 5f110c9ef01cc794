# The schema of a shared queue: the files of src/task/postgres/schema become a source file.

file(GLOB schema_files RELATIVE ${PROJECT_SOURCE_DIR}/src/task/postgres/schema CONFIGURE_DEPENDS
     src/task/postgres/schema/*.sql)
list(SORT schema_files)
set(schema_source ${PROJECT_BINARY_DIR}/generated/schema_files.cpp)
list(TRANSFORM schema_files PREPEND ${PROJECT_SOURCE_DIR}/src/task/postgres/schema/ OUTPUT_VARIABLE schema_paths)
add_custom_command(
  OUTPUT ${schema_source}
  COMMAND ${CMAKE_COMMAND} -D FOLDER=${PROJECT_SOURCE_DIR}/src/task/postgres/schema "-DFILES=${schema_files}" -D
          OUTPUT=${schema_source} -P ${PROJECT_SOURCE_DIR}/cmake/embed_schema.cmake
  DEPENDS ${schema_paths} cmake/embed_schema.cmake
  COMMENT "Embedding src/task/postgres/schema"
  VERBATIM)
set_source_files_properties(${schema_source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
