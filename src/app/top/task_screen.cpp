#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/top/screens.h"
#include "app/view/display_text.h"
#include "app/words/duration.h"

namespace duet::app::top {
namespace {

using task::State;

constexpr std::size_t most_prompt_lines = 3;

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> keys{{
    {"q  ^C", "quit; tasks and daemon go on"},
    {"↑ ↓  k j", "choose a task, or scroll its output"},
    {"PgUp PgDn", "the same by pages; space is PgDn"},
    {"Home End  g G", "to the first and to the last"},
    {"enter", "follow the task: its prompt, why it waits, its output"},
    {"esc  ←  q", "back to the list"},
    {"c", "cancel the task, after a question"},
    {"p", "pause the queue, or let it go on; what runs is not touched"},
    {"^L", "draw the screen anew"},
    {"^Z", "suspend; fg brings it back"},
    {"?", "this page"},
}};

Line title_of(const TaskRow& row, const Moment& moment, std::size_t width) {
  LineWriter line(width);
  line.add(row.id(), Paint::strong).fill(2).add(task::name_of(row.state), paint_of(row.state)).fill(2);
  line.add(row.agent, Paint::faint).fill(2);
  if (!row.group.empty()) line.add("[" + row.group + "]", Paint::faint).fill(2);
  if (row.priority != 0) line.add("prio " + std::to_string(row.priority), Paint::faint).fill(2);
  line.add(run_time_text(row, moment.now));
  if (row.ended) line.right("ended " + clock_text(*row.ended, moment), Paint::faint);
  return line.take();
}

void write_prompt(const std::string& prompt, ScreenSize size, Frame& out) {
  std::vector<std::string> lines = wrapped_words(prompt, size.columns);
  const std::size_t most = size.rows < 12 ? 1 : most_prompt_lines;
  if (lines.size() > most) {
    lines.resize(most);
    lines.back() = cut_to_width(lines.back() + "……", size.columns);
  }
  for (std::string& line : lines) out.push_back({{{std::move(line), Paint::plain}}});
}

// From the bottom up, until the rows are full.
void write_output(const Followed& task, std::optional<std::uint64_t> bottom, std::size_t rows, std::size_t width,
                  Frame& out) {
  std::vector<std::string> shown;
  std::uint64_t number = std::min(bottom.value_or(task.output.end()), task.output.end());
  while (number > task.output.first() && shown.size() < rows) {
    std::vector<std::string> lines = wrapped(task.output.at(--number), width);
    while (!lines.empty() && shown.size() < rows) {
      shown.push_back(std::move(lines.back()));
      lines.pop_back();
    }
  }
  for (auto line = shown.rbegin(); line != shown.rend(); ++line) out.push_back({{{std::move(*line), Paint::plain}}});
}

Line rule(const View& view, std::size_t width) {
  LineWriter line(width);
  const Followed& task = *view.followed();
  const OutputLines& output = task.output;
  line.add("OUTPUT", Paint::strong);
  const bool is_gone = task.done && !task.why.empty();  // with what it wrote
  if (output.end() == 0 && !is_gone) line.add(task.done ? "  it wrote nothing" : "  nothing yet", Paint::faint);
  if (view.bottom()) {
    line.add("  up to line " + std::to_string(*view.bottom()) + " of " + std::to_string(output.end()) +
                 " read; End goes along with it again",
             Paint::warn);
  }
  return line.take();
}

}  // namespace

std::string run_time_text(const TaskRow& row, base::UtcTime now) {
  using std::chrono::seconds;
  if (!row.started || row.state == State::queued) return {};
  const auto time = std::chrono::floor<seconds>(row.ended.value_or(now) - *row.started);
  return time < seconds(1) ? "<1s" : readable_duration(time);
}

Paint paint_of(State state) {
  switch (state) {
    case State::completed:
      return Paint::good;
    case State::failed:
      return Paint::fault;
    case State::running:
      return Paint::name;
    default:
      return Paint::plain;
  }
}

Screenful task_screen(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size) {
  Screenful out;
  Frame& frame = out.frame;
  const Followed& followed = *view.followed();
  if (const TaskRow* const row = board.find(followed.number)) {
    frame.push_back(title_of(*row, moment, size.columns));
    write_prompt(row->prompt, size, frame);
    if (!row->error.empty()) frame.push_back({{{cut_to_width(row->error, size.columns), Paint::fault}}});
  } else {
    LineWriter line(size.columns);
    frame.push_back(line.add(task::to_text(followed.number), Paint::strong).take());
  }
  for (const std::string* const text : {&link.trouble, &followed.why}) {
    if (text->empty()) continue;
    LineWriter line(size.columns);
    frame.push_back(line.add(*text, Paint::warn).take());
  }
  if (size.rows >= 12) frame.emplace_back();
  frame.push_back(rule(view, size.columns));
  const std::size_t used = frame.size() + 1;
  out.page_rows = size.rows > used ? size.rows - used : 1;
  write_output(followed, view.bottom(), out.page_rows, size.columns, frame);
  return out;
}

Screenful help_screen(ScreenSize size) {
  Screenful out;
  LineWriter title(size.columns);
  out.frame.push_back(title.add("Keys", Paint::strong).take());
  if (size.rows > keys.size() + 3) out.frame.emplace_back();
  for (const auto& [key, meaning] : keys) {
    LineWriter line(size.columns);
    out.frame.push_back(line.fill(2).cell(key, 14, Paint::name).add(meaning).take());
  }
  return out;
}

}  // namespace duet::app::top
