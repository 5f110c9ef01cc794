#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/top/frame.h"
#include "app/top/view.h"

namespace duet::app::top {

/// The terminal on stdin and stdout, drawn by ncurses, which writes only what has changed.
///
/// There is one of them at a time. It takes no signals: whoever has it says when the size has changed. What it draws is
/// UTF-8, whatever the locale.
class Screen {
 public:
  /// Takes the terminal over. Throws Failure if it cannot be drawn on.
  explicit Screen(bool coloured);
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  /// Gives it back as it was.
  ~Screen();

  ScreenSize size() const;
  void draw(const Frame& frame);
  /// The next key that was pressed; none: that was all.
  std::optional<Key> read_key();

  /// The terminal may have another size.
  void fit();
  /// Somebody else may have written on it.
  void forget_content();
  /// Gives the terminal back for a while, and takes it again.
  void leave();
  void come_back();

 private:
  struct Curses;
  std::unique_ptr<Curses> curses_;
};

/// Throws Failure, with what to do, unless stdin and stdout are a terminal that can be drawn on.
void check_terminal();

/// What makes the terminal that check_terminal() has looked at show lines again: the usual screen, a cursor, no
/// colours.
std::string leaving_sequence();

}  // namespace duet::app::top
