#pragma once

#include <string>

namespace duet::app {

/// A text in a file of its own that a person changes with $VISUAL or $EDITOR.
///
/// The file goes with this, unless it is kept.
class TextEditor {
 public:
  /// `name` is the beginning of the file's name. Throws std::system_error.
  TextEditor(const std::string& name, const std::string& text);
  TextEditor(const TextEditor&) = delete;
  TextEditor& operator=(const TextEditor&) = delete;
  ~TextEditor();

  /// Runs the editor and returns what the file holds then. Throws Failure if the editor fails, in
  /// which case a text that was changed is kept, and std::system_error.
  std::string edit();
  /// Leaves the file, and returns its path.
  std::string keep();

 private:
  std::string path_;
  std::string at_first_;
  bool kept_ = false;
};

}  // namespace duet::app
