#include "app/top/view.h"

#include <algorithm>
#include <utility>

namespace duet::app::top {
namespace {

using task::TaskId;
using Kind = Key::Kind;
using Wanted = View::Wish::Kind;

constexpr char control(char letter) { return static_cast<char>(letter - '@'); }

bool is(const Key& key, char character) { return key.kind == Kind::character && key.character == character; }

std::vector<TaskId> all_rows(const Board& board) {
  std::vector<TaskId> out;
  for (const auto* const list : {&board.running(), &board.queued(), &board.ended()}) {
    for (const TaskRow* const row : *list) out.push_back(row->number);
  }
  return out;
}

// How many places a key goes; none if it is no such key.
std::optional<std::int64_t> steps_of(const Key& key, std::size_t page) {
  constexpr std::int64_t far = std::int64_t{1} << 40;
  const auto rows = static_cast<std::int64_t>(std::max<std::size_t>(page, 1));
  if (key.kind == Kind::up || is(key, 'k')) return -1;
  if (key.kind == Kind::down || is(key, 'j')) return 1;
  if (key.kind == Kind::page_up || is(key, control('B'))) return -rows;
  if (key.kind == Kind::page_down || is(key, control('F')) || is(key, ' ')) return rows;
  if (key.kind == Kind::home || is(key, 'g')) return -far;
  if (key.kind == Kind::end || is(key, 'G')) return far;
  return std::nullopt;
}

}  // namespace

View::Wish View::press(const Key& key, const Board& board) {
  message_.clear();
  if (is(key, control('C'))) return {.kind = Wanted::quit};
  if (is(key, control('Z'))) return {.kind = Wanted::suspend};
  if (is(key, control('L'))) return {.kind = Wanted::redraw};
  if (question_) return answer(key);
  if (page_ == Page::help) return close_help();
  if (is(key, 'p')) return {.kind = Wanted::pause};
  return page_ == Page::list ? press_in_list(key, board) : press_in_task(key, board);
}

View::Wish View::press_in_list(const Key& key, const Board& board) {
  if (is(key, 'q')) return {.kind = Wanted::quit};
  if (move(key, board)) return {};
  if (is(key, '?') || is(key, 'h')) page_ = Page::help;
  if (is(key, 'c')) return ask_to_cancel(board, chosen_);
  if (key.kind != Kind::enter || !chosen_) return {};
  page_ = Page::task;
  followed_ = Followed{.number = *chosen_};
  bottom_.reset();
  return {.kind = Wanted::follow, .number = *chosen_};
}

View::Wish View::press_in_task(const Key& key, const Board& board) {
  if (is(key, 'q') || key.kind == Kind::back) return leave();
  if (is(key, 'c')) return ask_to_cancel(board, followed_->number);
  if (is(key, '?')) page_ = Page::help;
  scroll(key);
  return {};
}

// The task stays the one that was named, whatever happens before the answer.
View::Wish View::ask_to_cancel(const Board& board, std::optional<TaskId> number) {
  const TaskRow* const row = number ? board.find(*number) : nullptr;
  if (row == nullptr) {
    say("there is no task to cancel");
  } else if (task::has_ended(row->state)) {
    say(row->id() + " has ended");
  } else {
    question_ = number;
  }
  return {};
}

View::Wish View::answer(const Key& key) {
  const TaskId number = *std::exchange(question_, std::nullopt);
  if (is(key, 'y') || is(key, 'Y')) return {.kind = Wanted::cancel, .number = number};
  say(task::to_text(number) + " goes on");
  return {};
}

View::Wish View::close_help() {
  page_ = followed_ ? Page::task : Page::list;
  return {};
}

View::Wish View::leave() {
  page_ = Page::list;
  followed_.reset();
  return {.kind = Wanted::leave};
}

bool View::move(const Key& key, const Board& board) {
  const auto steps = steps_of(key, page_rows_);
  if (!steps) return false;
  const std::vector<TaskId> rows = all_rows(board);
  if (rows.empty()) return true;
  const auto last = static_cast<std::int64_t>(rows.size()) - 1;
  place_ = static_cast<std::size_t>(std::clamp<std::int64_t>(static_cast<std::int64_t>(place_) + *steps, 0, last));
  chosen_ = rows[place_];
  return true;
}

void View::settle(const Board& board) {
  const std::vector<TaskId> rows = all_rows(board);
  const auto found = chosen_ ? std::ranges::find(rows, *chosen_) : rows.end();
  if (found != rows.end()) {
    place_ = static_cast<std::size_t>(found - rows.begin());
    return;
  }
  place_ = rows.empty() ? 0 : std::min(place_, rows.size() - 1);
  chosen_ = rows.empty() ? std::nullopt : std::optional(rows[place_]);
}

void View::scroll(const Key& key) {
  const auto steps = steps_of(key, page_rows_ / 2);
  if (!steps) return;
  const OutputLines& output = followed_->output;
  const auto first = static_cast<std::int64_t>(output.first());
  const auto end = static_cast<std::int64_t>(output.end());
  const auto from = static_cast<std::int64_t>(bottom_.value_or(output.end()));
  const std::int64_t to = std::max(from + *steps, std::min(first + 1, end));
  bottom_ = to >= end ? std::nullopt : std::optional(static_cast<std::uint64_t>(to));
}

}  // namespace duet::app::top
