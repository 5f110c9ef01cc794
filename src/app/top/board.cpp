#include "app/top/board.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include <boost/describe/enum_from_string.hpp>

#include "app/top/screen_text.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "duet/rpc/utf8.h"

namespace duet::app::top {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;
using task::State;
using task::TaskId;

constexpr std::size_t longest_text = 512;  // bytes of a prompt or an outcome
constexpr std::int64_t seconds_of_rate = 60;

std::string shown_member(const object& record, std::string_view name) {
  return screen_text(rpc::first_bytes(member_text(record, name), longest_text));
}

std::int64_t number_member(const object& record, std::string_view name) {
  const value* const found = record.if_contains(name);
  if (found == nullptr) return 0;
  boost::json::error_code ignored;
  return found->to_number<std::int64_t>(ignored);  // 0 if it is none
}

bool flag_member(const object& record, std::string_view name) {
  const value* const found = record.if_contains(name);
  return found != nullptr && found->is_bool() && found->get_bool();
}

const object& object_member(const object& record, std::string_view name) {
  static const object none;
  const value* const found = record.if_contains(name);
  return found != nullptr && found->is_object() ? found->get_object() : none;
}

const array& array_member(const object& record, std::string_view name) {
  static const array none;
  const value* const found = record.if_contains(name);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

std::optional<base::UtcTime> time_member(const object& record, std::string_view name) {
  return parse_time(member_text(record, name));
}

std::optional<State> state_in(const object& record) {
  State state{};
  return boost::describe::enum_from_string(member_text(record, "state").c_str(), state) ? std::optional(state)
                                                                                        : std::nullopt;
}

std::vector<TaskId> ids_in(const array& list) {
  std::vector<TaskId> out;
  for (const value& entry : list) {
    if (!entry.is_string()) continue;
    if (const auto number = task::parse_task_id(std::string_view(entry.get_string()))) out.push_back(*number);
  }
  return out;
}

// `completed`, `exit 7`, `SIGKILL`, `timeout`, `cancelled`
std::string outcome_in(const object& record) {
  const std::string state = member_text(record, "state");
  if (state != "failed") return screen_text(rpc::first_bytes(state, longest_text));
  const std::string reason = member_text(object_member(record, "error"), "reason");
  if (reason == "exit") return "exit " + shown_member(record, "exitCode");
  if (reason == "signal") return shown_member(record, "signal");
  return screen_text(rpc::first_bytes(reason.empty() ? state : reason, longest_text));
}

// What both a record and an event may say.
void take_progress(TaskRow& row, const object& told) {
  if (const std::string agent = shown_member(told, "agent"); !agent.empty()) row.agent = agent;
  if (const auto started = time_member(told, "startedAt")) row.started = started;
  row.ended = time_member(told, "completedAt");
  row.outcome = outcome_in(told);
  row.error = shown_member(object_member(told, "error"), "message");
}

std::int64_t second_of(base::UtcTime time) { return base::milliseconds_of(time) / 1000; }

}  // namespace

void Board::take_record(const object& record) {
  const auto number = task::parse_task_id(member_text(record, "id"));
  const auto state = state_in(record);
  if (!number || !state) return;
  stale_.erase(*number);
  TaskRow* const known = row_for(*number, *state);
  if (known == nullptr) return;
  TaskRow& row = *known;
  row.has_record = true;
  take_progress(row, record);
  row.prompt = shown_member(record, "prompt");
  row.group = shown_member(record, "group");
  if (row.group == "default") row.group.clear();
  row.priority = number_member(record, "priority");
  row.held = flag_member(record, "held");
  row.after = ids_in(array_member(object_member(record, "metadata"), "after"));
  const auto retry_at = time_member(record, "retryAt");
  const auto not_before = retry_at ? retry_at : time_member(record, "notBefore");
  if (not_before) row.not_before = not_before;
  change_state(row, *state);
  const TaskRow* const kept = find(*number);
  if (kept != nullptr && is_out_of_sight(*kept)) forget(*number);
}

void Board::take_beginning_of_queue(const array& records, bool is_all) {
  last_known_.reset();
  std::optional<Rank> last;
  for (const value& entry : records) {
    if (!entry.is_object()) continue;
    take_record(entry.get_object());
    const auto number = task::parse_task_id(member_text(entry.get_object(), "id"));
    if (const TaskRow* const row = number ? find(*number) : nullptr) last = rank_of(*row);
  }
  if (is_all) return;
  last_known_ = last;
  std::vector<TaskId> hidden;
  for (const auto& [number, row] : rows_) {
    if (is_out_of_sight(row)) hidden.push_back(number);
  }
  for (const TaskId number : hidden) forget(number);
}

bool Board::is_out_of_sight(const TaskRow& row) const {
  return last_known_ && row.state == State::queued && row.has_record && *last_known_ < rank_of(row);
}

// None if the queue is longer than what is kept of it.
TaskRow* Board::row_for(TaskId number, State state) {
  if (const auto found = rows_.find(number); found != rows_.end()) return &found->second;
  if (state == State::queued && rows_in(State::queued) >= most_queued) return nullptr;
  ++rows_in(State::queued);
  return &rows_.emplace(number, TaskRow{.number = number}).first->second;
}

bool Board::take_event(std::string_view kind, const object& params) {
  if (kind == "tasksRemoved") {
    for (const TaskId number : ids_in(array_member(params, "taskIds"))) forget(number);
    return true;
  }
  const auto number = task::parse_task_id(member_text(params, "taskId"));
  const auto state = state_in(params);
  if (!number || !state) return false;
  TaskRow* const known = row_for(*number, *state);
  if (known == nullptr) return true;
  TaskRow& row = *known;
  take_progress(row, params);
  row.not_before = time_member(params, "retryAt");
  const bool tells_all = row.has_record && kind != "taskHeld" && kind != "taskReleased" && kind != "taskEdited";
  if (!tells_all) stale_.insert(*number);
  change_state(row, *state);
  return true;
}

void Board::change_state(TaskRow& row, State to) {
  const State from = std::exchange(row.state, to);
  --rows_in(from);
  ++rows_in(to);
  if (to == State::running && from != to) row.not_before.reset();
  if (task::has_ended(to) && !task::has_ended(from)) note_end(row);
  order_anew();
  drop_surplus();
}

void Board::note_end(const TaskRow& row) {
  if (!row.ended) return;
  ends_[second_of(*row.ended)][row.number] = row.state;
}

void Board::drop_surplus() {
  if (rows_.size() - rows_in(State::queued) - rows_in(State::running) < 2 * most_ended) return;
  const std::vector<const TaskRow*> surplus = ended();
  for (std::size_t i = most_ended; i < surplus.size(); ++i) forget(surplus[i]->number);
}

void Board::forget(TaskId number) {
  const auto found = rows_.find(number);
  if (found == rows_.end()) return;
  --rows_in(found->second.state);
  rows_.erase(found);
  stale_.erase(number);
  order_anew();
}

void Board::set_output(TaskId number, std::string line) {
  if (const auto found = rows_.find(number); found != rows_.end()) found->second.output = std::move(line);
}

void Board::take_status(const object& status) {
  status_ = {};
  status_.health = shown_member(status, "health");
  status_.version = shown_member(status, "version");
  status_.pid = number_member(status, "pid");
  status_.most_running = number_member(object_member(object_member(status, "subsystems"), "supervisor"), "maxRunning");
  for (const value& problem : array_member(status, "problems")) {
    if (!problem.is_object()) continue;
    const object& fields = problem.get_object();
    status_.problems.push_back(shown_member(fields, "subsystem") + ": " + shown_member(fields, "message"));
  }
}

void Board::take_counts(const object& counts) {
  counts_ = {.queued = number_member(counts, "queued"),
             .running = number_member(counts, "running"),
             .completed = number_member(counts, "completed"),
             .failed = number_member(counts, "failed"),
             .cancelled = number_member(counts, "cancelled")};
}

void Board::take_queue(const object& queue) {
  holds_.clear();
  if (flag_member(queue, "stopping")) holds_.push_back({.kind = Hold::Kind::daemon});
  if (flag_member(queue, "paused")) holds_.push_back({.kind = Hold::Kind::queue});
  for (const value& entry : array_member(queue, "groups")) {
    if (!entry.is_object() || !flag_member(entry.get_object(), "paused")) continue;
    holds_.push_back({.kind = Hold::Kind::group, .name = shown_member(entry.get_object(), "name")});
  }
  for (const value& entry : array_member(queue, "heldAgents")) {
    if (!entry.is_object()) continue;
    holds_.push_back({.kind = Hold::Kind::agent,
                      .name = shown_member(entry.get_object(), "agent"),
                      .until = time_member(entry.get_object(), "until")});
  }
  order_anew();
}

bool Board::is_paused() const {
  return std::ranges::any_of(holds_, [](const Hold& hold) { return hold.kind == Hold::Kind::queue; });
}

// Ends that are still to come are of a time before the clock was set back.
void Board::let_pass(base::UtcTime now) {
  ends_.erase(ends_.begin(), ends_.upper_bound(second_of(now) - seconds_of_rate));
  ends_.erase(ends_.upper_bound(second_of(now)), ends_.end());
  for (auto& [number, row] : rows_) {
    if (row.state != State::queued || !row.not_before || *row.not_before > now) continue;
    row.not_before.reset();
    order_anew();
  }
}

const TaskRow* Board::find(TaskId number) const {
  const auto found = rows_.find(number);
  return found == rows_.end() ? nullptr : &found->second;
}

std::optional<TaskId> Board::awaited(const TaskRow& row) const {
  for (const TaskId number : row.after) {
    const TaskRow* const other = find(number);
    if (other != nullptr && !task::has_ended(other->state)) return number;
  }
  return std::nullopt;
}

bool Board::is_kept_back(const TaskRow& row) const {
  return row.held || row.not_before || awaited(row) || std::ranges::any_of(holds_, [&](const Hold& hold) {
           return (hold.kind == Hold::Kind::group && hold.name == (row.group.empty() ? "default" : row.group)) ||
                  (hold.kind == Hold::Kind::agent && hold.name == row.agent);
         });
}

std::size_t Board::count_kept_back() const {
  const auto count = std::ranges::count_if(queued(), [this](const TaskRow* row) { return is_kept_back(*row); });
  return static_cast<std::size_t>(count);
}

// Groups take turns: the first one of each, then the second ones. Whose turn it is now is not known here. What waits
// for something else comes last. Each is looked at once: there may be thousands.
void Board::put_in_order_of_start(std::vector<const TaskRow*>& rows) const {
  std::vector<std::tuple<bool, std::size_t, Rank, const TaskRow*>> ranked;
  ranked.reserve(rows.size());
  for (const TaskRow* const row : rows) {
    ranked.emplace_back(is_kept_back(*row), 0, rank_of(*row), row);
  }
  std::ranges::sort(ranked);
  std::map<std::pair<bool, std::string_view>, std::size_t> dealt;
  for (auto& [kept_back, turn, rank, row] : ranked) turn = dealt[{kept_back, row->group}]++;
  std::ranges::sort(ranked);
  std::ranges::transform(ranked, rows.begin(), [](const auto& entry) { return std::get<3>(entry); });
}

const Board::Order& Board::ordered() const {
  if (order_) return *order_;
  Order order;
  for (const auto& [number, row] : rows_) {
    auto& list = row.state == State::running ? order.running : row.state == State::queued ? order.queued : order.ended;
    list.push_back(&row);
  }
  std::ranges::stable_sort(order.running, {}, &TaskRow::started);
  put_in_order_of_start(order.queued);
  std::ranges::stable_sort(order.ended, std::ranges::greater(),
                           [](const TaskRow* row) { return std::tuple(row->ended, row->number); });
  return order_.emplace(std::move(order));
}

void Board::asked_for(TaskId first, TaskId last) { stale_.erase(stale_.lower_bound(first), stale_.upper_bound(last)); }

Board::Rate Board::rate(base::UtcTime now) const {
  Rate sum;
  const auto behind = ends_.upper_bound(second_of(now));
  for (auto second = ends_.upper_bound(second_of(now) - seconds_of_rate); second != behind; ++second) {
    for (const auto& [number, state] : second->second) {
      ++sum.ended;
      if (state == State::failed) ++sum.failed;
    }
  }
  return sum;
}

}  // namespace duet::app::top
