#pragma once

#include <string>

#include "app/project/state_folder.h"
#include "duet/base/fd.h"

namespace duet::app {

/// As long as it lives, a process that ends by a fault (a crash, an abort, an exception that nobody caught, a signal it
/// does not know) leaves its last words: a line in the log and the stack behind it, and the same in daemon.last for
/// whoever asks later. Then the signal does what it does without us, core dump and exit status included. A signal that
/// whoever started us had ignored stays ignored, unless it is for a fault of our own.
///
/// It works with a broken heap: all it needs is made beforehand, and only calls that signal handlers may make are made.
/// (The stack comes last, since reading it could hang; then an alarm ends the process.) SIGKILL leaves no words. A
/// stack that overflows is told for the thread that made this only. One at a time.
class LastWords {
 public:
  /// `log_path`: opened when it is needed, since the log may have been rotated; else, or if empty, stderr is written
  /// to.
  LastWords(const StateFolder& folder, const std::string& log_path);
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  ~LastWords();

  /// Those of the daemon before, once this one is there: processes may have the same number, in containers say.
  void forget_earlier() const;

 private:
  base::Fd record_;
};

}  // namespace duet::app
