# Writes OUTPUT, a source file with the text of FILES, which are under FOLDER. Run by page.cmake with `cmake -P`.
#
# As string literals: 300 KiB take 0.1 s here and 0.1 s to compile. As an array of bytes they took 1.8 s and 3.1 s. With
# `.incbin` it would be 0.1 s less, and a second language, whose compiler refuses the flags of the first.

set(entries "")
foreach(file IN LISTS FILES)
  file(READ ${FOLDER}/${file} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "?" "\\?" text "${text}") # else two of them may be taken for a trigraph
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  string(APPEND entries "{\"${file}\"sv,\n\"${text}\"sv},\n")
endforeach()

file(WRITE ${OUTPUT}
     "#include \"app/doors/page_files.h\"
#pragma GCC diagnostic ignored \"-Woverlength-strings\"
using namespace std::string_view_literals;
namespace {
constexpr duet::app::EmbeddedFile embedded_files[] = {
${entries}};
}  // namespace
std::span<const duet::app::EmbeddedFile> duet::app::embedded_page() { return embedded_files; }
")
