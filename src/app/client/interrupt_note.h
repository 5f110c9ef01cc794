#pragma once

#include <string>

#include "app/client/line_prefixer.h"

namespace duet::app {

/// While it lives, ^C ends the program as it would without it, but says something on stderr before, and on stdout the
/// lines of several tasks that have no end yet. A second ^C ends it at once.
///
/// One at a time: signals have no other place. A program that was started with SIGINT ignored goes on ignoring it.
class InterruptNote {
 public:
  /// `note` is a line without its end; nothing is said if it is empty.
  explicit InterruptNote(const std::string& note, const LinePrefixer* lines = nullptr);
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;
  ~InterruptNote();

 private:
  bool installed_ = false;
};

}  // namespace duet::app
