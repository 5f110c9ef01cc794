#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "app/top/screens.h"
#include "app/view/display_text.h"
#include "app/words/program_name.h"

namespace duet::app::top {
namespace {

using task::State;

constexpr std::size_t most_problems = 3;
constexpr std::size_t widest_agent = 14;
constexpr std::size_t time_width = 8;
constexpr std::size_t least_rows = 3;      // of a section, if there are so many
constexpr std::size_t wide = 110;          // columns: output stands beside the prompt, else below it
constexpr std::size_t room_for_both = 30;  // columns for a prompt and a line of output
constexpr std::size_t tall = 20;           // rows: there is room for it below the prompt

/// What the rows of a section have in common.
struct Columns {
  std::size_t width = 0;
  std::size_t id = 0;
  std::size_t agent = 0;
  bool output_below = false;
};

struct Section {
  std::string title;
  std::string_view none;
  const std::vector<const TaskRow*>* rows;
  std::size_t lines_each = 1;
  std::size_t shown = 0;  // rows
};

// All of them get a few rows, then the first ones as many as they want.
void share_out(std::span<Section> sections, std::size_t lines) {
  const auto give = [&lines](Section& section, std::size_t rows) {
    const std::size_t more = std::min({rows, section.rows->size() - section.shown, lines / section.lines_each});
    section.shown += more;
    lines -= more * section.lines_each;
  };
  for (Section& section : sections) give(section, least_rows);
  for (Section& section : sections) give(section, section.rows->size());
}

// What it waits for, if that is known and not just its turn.
std::string waits_for(const Board& board, const TaskRow& row, const Moment& moment) {
  if (row.held) return "held";
  if (const auto number = board.awaited(row)) return "after " + task::to_text(*number);
  if (row.not_before) return "not before " + clock_text(*row.not_before, moment);
  for (const Hold& hold : board.holds()) {
    if (hold.kind == Hold::Kind::agent && hold.name == row.agent) return "agent held";
    if (hold.kind == Hold::Kind::group && hold.name == (row.group.empty() ? "default" : row.group))
      return "group paused";
  }
  return {};
}

/// Writes the rows of the three sections.
class RowWriter {
 public:
  RowWriter(const Board& board, const Moment& moment, const Columns& columns)
      : board_(board), moment_(moment), columns_(columns) {}

  void write(const TaskRow& row, bool chosen, Frame& out) const {
    LineWriter line(columns_.width);
    line.add(chosen ? "▸ " : "  ").cell(row.id(), columns_.id, paint_of(row.state));
    line.cell(row.agent, columns_.agent, Paint::faint);
    if (row.state == State::running) return write_running(row, chosen, line, out);
    row.state == State::queued ? write_queued(row, line) : write_ended(row, line);
    line.add(prompt_of(row));
    out.push_back(line.take(chosen));
  }

 private:
  static std::string prompt_of(const TaskRow& row) { return row.has_record ? row.prompt : "…"; }

  void write_running(const TaskRow& row, bool chosen, LineWriter& line, Frame& out) const {
    line.number(run_time_text(row, moment_.now), time_width);
    if (columns_.output_below) {
      out.push_back(line.add(prompt_of(row)).take(chosen));
      LineWriter below(columns_.width);
      out.push_back(below.fill(columns_.id + 4).add(row.output, Paint::faint).take());
      return;
    }
    const bool has_room_for_both = line.left() >= room_for_both;
    if (has_room_for_both)
      line.cell(prompt_of(row), line.left() * 2 / 5).add(row.output, Paint::faint);
    else
      line.add(prompt_of(row));
    out.push_back(line.take(chosen));
  }

  void write_queued(const TaskRow& row, LineWriter& line) const {
    line.number(row.priority == 0 ? "" : "prio " + std::to_string(row.priority), time_width, Paint::faint);
    const std::string group = row.group.empty() ? "" : "[" + row.group + "] ";
    line.add(group, Paint::faint);
    const std::string why = waits_for(board_, row, moment_);
    if (!why.empty()) line.add(why, Paint::warn).fill(2);
  }

  void write_ended(const TaskRow& row, LineWriter& line) const {
    constexpr std::size_t outcome_width = 10;
    line.number(run_time_text(row, moment_.now), time_width);
    const std::string when = row.ended ? clock_text(*row.ended, moment_) : "";
    line.cell(when.size() > time_width ? when.substr(0, when.find(' ')) : when, time_width, Paint::faint);
    line.cell(row.outcome, outcome_width, paint_of(row.state));
  }

  const Board& board_;
  const Moment& moment_;
  const Columns& columns_;
};

/// The page that shows all tasks.
class ListScreen {
 public:
  ListScreen(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size)
      : board_(board), view_(view), link_(link), moment_(moment), size_(size) {}

  Screenful lay_out() {
    write_head();
    write_sections();
    return std::move(out_);
  }

 private:
  void add(LineWriter& line) { out_.frame.push_back(line.take()); }

  void write_head() {
    LineWriter title(size_.columns);
    title.add(std::string(program_name) + " top", Paint::strong).fill(2);
    const std::string health = link_.trouble.empty() ? board_.status().health : std::string();
    const std::size_t taken = health.empty() ? 0 : display_width(health) + 2;
    title.add(cut_to_width(link_.place, title.left() - std::min(title.left(), taken)), Paint::name);
    title.right(health, health == "healthy" ? Paint::good : Paint::warn);
    add(title);
    write_counts();
    write_troubles();
  }

  // Of a long queue not all rows are known.
  std::size_t queued() const {
    return std::max(board_.queued().size(),
                    static_cast<std::size_t>(std::max<std::int64_t>(board_.counts().queued, 0)));
  }

  void write_counts() {
    const Board::Counts& counts = board_.counts();
    const std::int64_t most = board_.status().most_running;
    LineWriter line(size_.columns);
    const auto count = [&](std::int64_t number, const std::string& what, Paint paint) {
      line.add(std::to_string(number), number == 0 ? Paint::faint : paint).add(what, Paint::faint);
    };
    count(static_cast<std::int64_t>(board_.running().size()),
          (most > 0 ? " of " + std::to_string(most) : "") + " running  ", Paint::name);
    count(static_cast<std::int64_t>(queued()), " queued  ", Paint::strong);
    count(counts.completed, " completed  ", Paint::good);
    count(counts.failed, " failed  ", Paint::fault);
    if (counts.cancelled > 0) count(counts.cancelled, " cancelled", Paint::plain);
    const Board::Rate rate = board_.rate(moment_.now);
    const std::string failed = rate.failed > 0 ? ", " + std::to_string(rate.failed) + " failed" : "";
    line.right(std::to_string(rate.ended) + "/min" + failed, rate.failed > 0 ? Paint::fault : Paint::faint);
    add(line);
  }

  void write_troubles() {
    if (!link_.trouble.empty()) {
      LineWriter line(size_.columns);
      add(line.add(link_.trouble, Paint::warn));
    }
    if (!board_.holds().empty()) write_holds();
    const std::vector<std::string>& problems = board_.status().problems;
    for (std::size_t i = 0; i < std::min(problems.size(), most_problems); ++i) {
      LineWriter line(size_.columns);
      const bool is_last = i + 1 == most_problems && problems.size() > most_problems;
      if (is_last)
        line.add("and " + std::to_string(problems.size() - i) + " more problems", Paint::fault);
      else
        line.add("problem  ", Paint::fault).add(problems[i]);
      add(line);
    }
  }

  void write_holds() {
    LineWriter line(size_.columns);
    for (const Hold& hold : board_.holds()) {
      const std::string until = hold.until ? " until " + clock_text(*hold.until, moment_) : "";
      if (hold.kind == Hold::Kind::daemon) line.add("the daemon is stopping: nothing new starts  ", Paint::warn);
      if (hold.kind == Hold::Kind::queue) line.add("the queue is paused: nothing new starts  ", Paint::warn);
      if (hold.kind == Hold::Kind::group) line.add("group " + hold.name + " is paused  ", Paint::warn);
      if (hold.kind == Hold::Kind::agent) line.add(hold.name + " is held" + until + "  ", Paint::warn);
    }
    add(line);
  }

  Columns columns() const {
    Columns columns{.width = size_.columns};
    for (const auto* const list : {&board_.running(), &board_.queued(), &board_.ended()}) {
      for (std::size_t i = 0; i < std::min(list->size(), Board::most_ended); ++i) {
        columns.id = std::max(columns.id, (*list)[i]->id().size());
        columns.agent = std::max(columns.agent, display_width((*list)[i]->agent));
      }
    }
    columns.agent = std::min({columns.agent, widest_agent, size_.columns / 6});
    columns.output_below = size_.columns < wide && size_.rows >= tall;
    return columns;
  }

  // Between head and foot. Empty lines separate sections where there is room.
  void write_sections() {
    const Columns shape = columns();
    std::array<Section, 3> sections{{
        {.title = "RUNNING",
         .none = "nothing runs",
         .rows = &board_.running(),
         .lines_each = shape.output_below ? 2U : 1U},
        {.title = "QUEUED", .none = "nothing waits", .rows = &board_.queued()},
        {.title = "ENDED", .none = "nothing has ended", .rows = &board_.ended()},
    }};
    const std::size_t used = out_.frame.size() + 1;  // the foot
    const std::size_t room = size_.rows > used ? size_.rows - used : 0;
    const bool airy = size_.rows >= tall;
    const std::size_t head = airy ? 2 : 1;
    const std::size_t most = std::min<std::size_t>(3, room / (head + 1));
    const std::span<Section> shown(sections.data(), most);
    share_out(shown, room - most * head);
    const RowWriter rows(board_, moment_, shape);
    for (const Section& section : shown) {
      if (airy) out_.frame.emplace_back();
      write_section(section, rows);
    }
  }

  void write_section(const Section& section, const RowWriter& rows) {
    const bool is_queue = section.rows == &board_.queued();
    const std::size_t total = is_queue ? queued() : section.rows->size();
    LineWriter title(size_.columns);
    title.add(section.title, Paint::strong);
    if (total == 0) title.add("  " + std::string(section.none), Paint::faint);
    if (section.shown < total) {
      title.add("  " + std::to_string(section.shown) + " of " + std::to_string(total), Paint::faint);
    }
    add(title);
    const std::size_t first = first_row(section);
    for (std::size_t i = first; i < first + section.shown; ++i) {
      const TaskRow& row = *(*section.rows)[i];
      rows.write(row, row.number == view_.chosen(), out_.frame);
      if (row.state == State::running) out_.running.push_back(row.number);
    }
    out_.page_rows = std::max(out_.page_rows, section.shown);
  }

  // The rows move up only as far as the cursor needs it.
  std::size_t first_row(const Section& section) const {
    const auto found =
        std::ranges::find(*section.rows, view_.chosen(), [](const TaskRow* row) { return std::optional(row->number); });
    const auto place = static_cast<std::size_t>(found - section.rows->begin());
    return found == section.rows->end() || place < section.shown ? 0 : place - section.shown + 1;
  }

  const Board& board_;
  const View& view_;
  const Link& link_;
  const Moment& moment_;
  ScreenSize size_;
  Screenful out_;
};

}  // namespace

Screenful list_screen(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size) {
  return ListScreen(board, view, link, moment, size).lay_out();
}

}  // namespace duet::app::top
