# Writes OUTPUT, a source file with the text of FILES, which are under FOLDER and called NNNN….sql by the schema's version.
# Run by schema.cmake with `cmake -P`. String literals, as in embed_page.cmake.

set(entries "")
foreach(file IN LISTS FILES)
  if(NOT file MATCHES "^([0-9][0-9][0-9][0-9])")
    message(FATAL_ERROR "${file} must begin with the four digits of its version")
  endif()
  string(REGEX REPLACE "^0*([0-9]+).*" "\\1" version "${file}")
  file(READ ${FOLDER}/${file} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # else two of them may be taken for a trigraph
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  string(APPEND entries "{${version}, \"${file}\"sv,\n\"${text}\"sv},\n")
endforeach()

file(WRITE ${OUTPUT}
     "#include \"task/postgres/migration_file.h\"
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
using namespace std::string_view_literals;
namespace {
constexpr duet::task::postgres::MigrationFile files[] = {
{0, {}, {}},  // an array has one entry at least
${entries}};
}  // namespace
std::span<const duet::task::postgres::MigrationFile> duet::task::postgres::migration_files() {
  return std::span(files).subspan(1);
}
")
