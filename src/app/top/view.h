#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/top/board.h"
#include "app/top/screen_text.h"
#include "task/task.h"

namespace duet::app::top {

/// A key, whatever bytes a terminal sends for it.
struct Key {
  enum class Kind : std::uint8_t { character, up, down, page_up, page_down, home, end, enter, back, other };
  Kind kind = Kind::other;
  char character = '\0';  ///< of Kind::character; ^A is 1
};

/// The task that is looked at.
struct Followed {
  task::TaskId number = 0;
  std::string why = {};  ///< it does not run, or is not there any more
  OutputLines output = {};
  std::uint64_t next = 0;  ///< the first byte of its output that has not been read
  bool done = false;       ///< there will be no more
};

/// What a person looks at, and what becomes of keys.
///
/// The cursor stays with its task wherever that goes, so that a key never means another task than the one it was
/// pressed for. Pure: what is to be done about a key is said to the caller.
class View {
 public:
  enum class Page : std::uint8_t { list, task, help };
  struct Wish {
    enum class Kind : std::uint8_t { nothing, quit, suspend, redraw, follow, leave, cancel, pause };
    Kind kind = Kind::nothing;
    task::TaskId number = 0;
  };

  /// What a key means now.
  Wish press(const Key& key, const Board& board);
  /// The board has changed: puts the cursor somewhere if its task is gone.
  void settle(const Board& board);

  Page page() const { return page_; }
  const std::optional<task::TaskId>& chosen() const { return chosen_; }
  /// The task that was asked about and is not cancelled yet.
  const std::optional<task::TaskId>& question() const { return question_; }
  const std::string& message() const { return message_; }
  /// Stays until the next key.
  void say(std::string message) { message_ = std::move(message); }

  const std::optional<Followed>& followed() const { return followed_; }
  std::optional<Followed>& followed() { return followed_; }
  /// The line of the output behind the last one that is shown; none: it goes along with the end.
  const std::optional<std::uint64_t>& bottom() const { return bottom_; }
  /// How far a page goes.
  void set_page_rows(std::size_t rows) { page_rows_ = rows; }

 private:
  Wish press_in_list(const Key& key, const Board& board);
  Wish press_in_task(const Key& key, const Board& board);
  Wish answer(const Key& key);
  Wish ask_to_cancel(const Board& board, std::optional<task::TaskId> number);
  Wish close_help();
  Wish leave();
  bool move(const Key& key, const Board& board);
  void scroll(const Key& key);

  Page page_ = Page::list;
  std::optional<task::TaskId> chosen_;
  std::size_t place_ = 0;  // of the cursor among all rows
  std::optional<task::TaskId> question_;
  std::string message_;
  std::optional<Followed> followed_;
  std::optional<std::uint64_t> bottom_;
  std::size_t page_rows_ = 10;
};

}  // namespace duet::app::top
