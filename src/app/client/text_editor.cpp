#include "app/client/text_editor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include "app/project/failure.h"
#include "duet/base/fd.h"

namespace duet::app {
namespace {

constexpr const char* file_variable = "DUET_RPC_EDIT";

std::string editor_command() {
  for (const char* const name : {"VISUAL", "EDITOR"}) {
    const char* const editor = std::getenv(name);
    if (editor != nullptr && *editor != '\0') return editor;
  }
  return "vi";
}

std::string folder_for_texts() {
  const char* const folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

}  // namespace

TextEditor::TextEditor(const std::string& name, const std::string& text)
    : path_(folder_for_texts() + "/" + name + "-XXXXXX.txt"), at_first_(text) {
  const base::Fd file(base::check_call(mkstemps(path_.data(), 4), "a file for the editor"));
  if (!base::write_all(file.get(), text)) {
    const int error = errno;
    unlink(path_.c_str());
    throw std::system_error(error, std::generic_category(), path_);
  }
}

TextEditor::~TextEditor() {
  if (!kept_) unlink(path_.c_str());
}

// The shell cuts `code --wait` into words, as everybody does with these variables; the path goes around it.
std::string TextEditor::edit() {
  const std::string editor = editor_command();
  setenv(file_variable, path_.c_str(), 1);
  const int status = std::system((editor + " \"$" + file_variable + "\"").c_str());  // NOLINT: the user's own words
  const bool succeeded = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::ifstream file(path_, std::ios::binary);
  if (succeeded && !file) throw Failure("the editor left no text; nothing was changed");
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (succeeded) return text;
  const std::string where = file && text != at_first_ ? "; the text is kept in " + keep() : "";
  throw Failure("the editor '" + editor + "' failed; nothing was changed" + where);
}

std::string TextEditor::keep() {
  kept_ = true;
  return path_;
}

}  // namespace duet::app
