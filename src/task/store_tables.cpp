#include "task/store_tables.h"

#include <limits>
#include <stdexcept>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::task {
namespace {

// Each makes a store of the next version; the number of those that were run is the store's `user_version`. Steps are
// only ever added. What is asked of a task stands apart from what changes if it is long, so that it is written once.
constexpr std::array<const char*, store_version> migrations{
    R"(
CREATE TABLE task(
  id INTEGER PRIMARY KEY,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  agent TEXT NOT NULL,
  prompt TEXT NOT NULL,         -- its beginning, if prompt_cut
  prompt_cut INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  key TEXT,
  retries INTEGER NOT NULL,
  after TEXT,                   -- '3,14,15'
  created_at INTEGER NOT NULL,  -- all times are milliseconds since 1970
  attempts INTEGER NOT NULL,
  cancelling INTEGER NOT NULL,
  retry_at INTEGER,
  started_at INTEGER,
  completed_at INTEGER,
  pid INTEGER,
  exit_code INTEGER,
  signal TEXT,
  error_reason INTEGER,
  error_message TEXT
);
CREATE UNIQUE INDEX task_by_key ON task(key) WHERE key IS NOT NULL;
CREATE INDEX task_by_state ON task(state, id);
CREATE INDEX task_by_end ON task(completed_at) WHERE completed_at IS NOT NULL;
CREATE TABLE request(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE result(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE remembered(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)",
    R"(
CREATE TABLE event(
  seq INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  task INTEGER NOT NULL,        -- 0: none
  params TEXT NOT NULL          -- with the seq
);
INSERT INTO remembered(name, value) VALUES('epoch', lower(hex(randomblob(8))));
ALTER TABLE task ADD COLUMN end_seq INTEGER;  -- of the event of its end; 0: an earlier version saw that
UPDATE task SET end_seq=0 WHERE completed_at IS NOT NULL;
DROP INDEX task_by_end;
CREATE INDEX task_by_end ON task(end_seq, completed_at) WHERE end_seq IS NOT NULL;
)",
    R"(
ALTER TABLE task ADD COLUMN body TEXT;  -- NULL: it is long, and in the table of requests
)"};

constexpr std::size_t version_with_events = 2;
constexpr std::size_t longest_body_in_row = 1024;  // of a task

constexpr std::string_view task_columns =
    "SELECT task.id, state, attempts, cancelling, retry_at, started_at, completed_at, pid, exit_code, signal,"
    " error_reason, error_message, priority, agent, prompt, prompt_cut, metadata, created_at,";

std::string select(std::string_view columns, std::string_view rest) { return std::string(columns) + std::string(rest); }

std::int64_t to_millis(base::UtcTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::optional<std::int64_t> to_millis(const std::optional<base::UtcTime>& time) {
  return time ? std::optional(to_millis(*time)) : std::nullopt;
}

base::UtcTime from_millis(std::int64_t millis) { return base::UtcTime(std::chrono::milliseconds(millis)); }

std::optional<base::UtcTime> time_at(const Statement& row, int at) {
  return row.is_null(at) ? std::nullopt : std::optional(from_millis(row.number(at)));
}

std::int64_t number_of(TaskId id) { return static_cast<std::int64_t>(id); }

// Of columns 1 to 11 of a row.
Progress progress_of(const Statement& row) {
  Progress progress;
  progress.state = static_cast<State>(row.number(1));
  progress.attempts = static_cast<std::uint32_t>(row.number(2));
  progress.cancelling = row.number(3) != 0;
  progress.retry_at = time_at(row, 4);
  progress.started_at = time_at(row, 5);
  progress.completed_at = time_at(row, 6);
  progress.pid = row.optional_number(7);
  progress.exit_code = row.optional_number(8);
  progress.signal = row.text(9);
  if (!row.is_null(10)) progress.error = {static_cast<Reason>(row.number(10)), std::string(row.text(11))};
  return progress;
}

Task task_of(const Statement& row) {
  Task task{.id = static_cast<TaskId>(row.number(0)), .progress = progress_of(row)};
  task.priority = row.number(12);
  task.agent = row.text(13);
  task.prompt = row.text(14);
  if (!rpc::is_valid_json(row.text(16))) throw SqliteError(SQLITE_CORRUPT, "the record of a task is damaged");
  task.metadata = rpc::parse_value(row.text(16)).as_object();
  task.created_at = from_millis(row.number(17));
  if (!row.is_null(18)) task.result = row.text(18);
  return task;
}

Event event_of(const Statement& row) {
  return {.seq = static_cast<std::uint64_t>(row.number(0)),
          .kind = std::string(row.text(1)),
          .task = static_cast<TaskId>(row.number(2)),
          .params = std::string(row.text(3))};
}

std::optional<std::string_view> or_null(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::string joined(const std::vector<TaskId>& ids) {
  std::string out;
  for (const TaskId id : ids) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

std::vector<TaskId> split(std::string_view text) {
  std::vector<TaskId> ids;
  for (std::size_t at = 0; at < text.size();
       at = text.find(',', at) == text.npos ? text.size() : text.find(',', at) + 1) {
    ids.push_back(std::stoull(std::string(text.substr(at, text.find(',', at) - at))));
  }
  return ids;
}

}  // namespace

void migrate(const Database& database, const std::function<void()>& take_over) {
  for (auto next = static_cast<std::size_t>(database.number("PRAGMA user_version")); next < migrations.size(); ++next) {
    database.run("BEGIN IMMEDIATE");
    database.run(migrations.at(next));
    if (next + 1 == version_with_events && take_over) take_over();
    database.run(("PRAGMA user_version=" + std::to_string(next + 1) + ";COMMIT;").c_str());
  }
}

StoreWriter::StoreWriter(const Database& database)
    : insert_(
          database.prepare("INSERT INTO task(id, state, priority, agent, prompt, prompt_cut, metadata, key, retries,"
                           " after, created_at, body, attempts, cancelling) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,0,0)")),
      insert_request_(database.prepare("INSERT INTO request(id, body) VALUES(?,?)")),
      update_(database.prepare("UPDATE task SET state=?, attempts=?, cancelling=?, retry_at=?, started_at=?,"
                               " completed_at=?, pid=?, exit_code=?, signal=?, error_reason=?, error_message=?,"
                               " end_seq=? WHERE id=?")),
      set_result_(database.prepare("INSERT OR REPLACE INTO result(id, bytes) VALUES(?,?)")),
      erase_{database.prepare("DELETE FROM task WHERE id=?"), database.prepare("DELETE FROM request WHERE id=?"),
             database.prepare("DELETE FROM result WHERE id=?")},
      remember_(database.prepare("INSERT OR REPLACE INTO remembered(name, value) VALUES(?,?)")),
      forget_(database.prepare("DELETE FROM remembered WHERE name=?")),
      tell_(database.prepare("INSERT INTO event(seq, kind, task, params) VALUES(?,?,?,?)")),
      trim_(database.prepare("DELETE FROM event WHERE seq<?")),
      last_seq_(static_cast<std::uint64_t>(database.number("SELECT max(seq) FROM event"))) {}

void StoreWriter::insert(const Task& task, const ActiveTask& active, std::string_view key, std::string_view body) {
  const std::string_view beginning = rpc::first_bytes(task.prompt, StoreReader::most_listed);
  insert_.bind(1, number_of(task.id)).bind(2, static_cast<std::int64_t>(State::queued)).bind(3, task.priority);
  insert_.bind(4, task.agent).bind(5, beginning).bind(6, std::int64_t{beginning.size() < task.prompt.size()});
  const std::string metadata = rpc::to_text(task.metadata);
  const std::string after = joined(active.after);
  insert_.bind(7, metadata).bind(8, or_null(key)).bind(9, std::int64_t{active.retries}).bind(10, or_null(after));
  const bool is_short = body.size() <= longest_body_in_row;
  insert_.bind(11, to_millis(task.created_at)).bind(12, or_null(is_short ? body : std::string_view())).run();
  if (!is_short) insert_request_.bind(1, number_of(task.id)).bind(2, body).run();
}

void StoreWriter::update(TaskId id, const Progress& progress) {
  update_.bind(1, static_cast<std::int64_t>(progress.state)).bind(2, std::int64_t{progress.attempts});
  update_.bind(3, std::int64_t{progress.cancelling}).bind(4, to_millis(progress.retry_at));
  update_.bind(5, to_millis(progress.started_at)).bind(6, to_millis(progress.completed_at));
  update_.bind(7, progress.pid).bind(8, progress.exit_code).bind(9, or_null(progress.signal));
  const std::optional<Failure>& error = progress.error;
  update_.bind(10, error ? std::optional(static_cast<std::int64_t>(error->reason)) : std::nullopt);
  update_.bind(11, error ? std::optional(std::string_view(error->message)) : std::nullopt);
  // Its event comes next.
  update_.bind(12, has_ended(progress.state) ? std::optional(static_cast<std::int64_t>(last_seq_ + 1)) : std::nullopt);
  update_.bind(13, number_of(id)).run();
}

void StoreWriter::set_result(TaskId id, std::string_view result) {
  set_result_.bind(1, number_of(id)).bind_bytes(2, result).run();
}

void StoreWriter::erase(TaskId id) {
  for (Statement& statement : erase_) statement.bind(1, number_of(id)).run();
}

void StoreWriter::remember(std::string_view name, std::string_view value) {
  remember_.bind(1, name).bind(2, value).run();
}

void StoreWriter::forget(std::string_view name) { forget_.bind(1, name).run(); }

void StoreWriter::tell(std::string_view kind, TaskId task, rpc::ObjectText params) {
  const std::uint64_t seq = last_seq_ + 1;
  told_.push_back({.seq = seq, .kind = std::string(kind), .task = task, .params = params.add("seq", seq).take()});
  last_seq_ = seq;
  const Event& told = told_.back();
  tell_.bind(1, static_cast<std::int64_t>(told.seq)).bind(2, told.kind).bind(3, number_of(task)).bind(4, told.params);
  tell_.run();
}

void StoreWriter::trim_events(std::uint64_t oldest) { trim_.bind(1, static_cast<std::int64_t>(oldest)).run(); }

std::vector<Event> StoreWriter::take_told() { return std::exchange(told_, {}); }

void StoreWriter::take_back_told() {
  last_seq_ -= told_.size();
  told_.clear();
}

StoreReader::StoreReader(const Database& database)
    : find_(database.prepare(select(task_columns, " bytes FROM task LEFT JOIN result USING(id) WHERE task.id=?"))),
      standing_(database.prepare("SELECT state, attempts FROM task WHERE id=?")),
      find_key_(database.prepare("SELECT task.id, state, coalesce(task.body, request.body)"
                                 " FROM task LEFT JOIN request USING(id) WHERE key=?")),
      body_(database.prepare("SELECT coalesce(task.body, request.body)"
                             " FROM task LEFT JOIN request USING(id) WHERE task.id=?")),
      list_(database.prepare(select(task_columns,
                                    " substr(bytes, -?3) FROM task LEFT JOIN result USING(id)"
                                    " WHERE task.id<?1 ORDER BY task.id DESC LIMIT ?2"))),
      list_by_state_(database.prepare(select(task_columns,
                                             " substr(bytes, -?3) FROM task LEFT JOIN result USING(id)"
                                             " WHERE task.id<?1 AND state=?4 ORDER BY task.id DESC LIMIT ?2"))),
      active_(database.prepare("SELECT id, state, attempts, cancelling, retry_at, started_at, completed_at, pid,"
                               " exit_code, signal, error_reason, error_message, priority, retries, after, agent"
                               " FROM task WHERE state IN (0, 1) ORDER BY id")),
      counts_(database.prepare("SELECT state, count(*) FROM task GROUP BY state")),
      newest_(database.prepare("SELECT max(id) FROM task")),
      first_ended_(database.prepare("SELECT id, state, attempts, completed_at FROM task WHERE end_seq IS NOT NULL"
                                    " ORDER BY end_seq, completed_at")),
      recall_(database.prepare("SELECT value FROM remembered WHERE name=?")),
      each_remembered_(database.prepare("SELECT name, value FROM remembered WHERE name>=? ORDER BY name")),
      events_after_(database.prepare("SELECT seq, kind, task, params FROM event WHERE seq>? ORDER BY seq LIMIT ?")),
      newest_events_(database.prepare("SELECT seq, kind, task, params FROM event ORDER BY seq DESC")) {}

std::optional<Task> StoreReader::find(TaskId id) {
  const Reading reading(find_);
  if (!find_.bind(1, number_of(id)).step()) return std::nullopt;
  Task task = task_of(find_);
  constexpr int prompt_cut = 15;
  if (find_.number(prompt_cut) != 0) task.prompt = from_body(body(id)).prompt;
  return task;
}

std::optional<StoreReader::Standing> StoreReader::standing(TaskId id) {
  const Reading reading(standing_);
  if (!standing_.bind(1, number_of(id)).step()) return std::nullopt;
  return Standing{static_cast<State>(standing_.number(0)), static_cast<std::uint32_t>(standing_.number(1))};
}

std::optional<StoreReader::Keyed> StoreReader::find_key(std::string_view key) {
  const Reading reading(find_key_);
  if (!find_key_.bind(1, key).step()) return std::nullopt;
  return Keyed{static_cast<TaskId>(find_key_.number(0)), static_cast<State>(find_key_.number(1)),
               std::string(find_key_.text(2))};
}

std::string StoreReader::body(TaskId id) {
  const Reading reading(body_);
  return body_.bind(1, number_of(id)).step() ? std::string(body_.text(0)) : std::string();
}

void StoreReader::list(std::optional<State> state, TaskId before, std::size_t limit,
                       const std::function<bool(const Task&)>& each) {
  Statement& statement = state ? list_by_state_ : list_;
  const Reading reading(statement);
  statement.bind(1, number_of(before)).bind(2, static_cast<std::int64_t>(limit));
  statement.bind(3, static_cast<std::int64_t>(most_listed));
  if (state) statement.bind(4, static_cast<std::int64_t>(*state));
  while (statement.step() && each(task_of(statement))) {
  }
}

void StoreReader::each_active(const std::function<void(ActiveTask)>& each) {
  const Reading reading(active_);
  while (active_.step()) {
    each({.id = static_cast<TaskId>(active_.number(0)),
          .priority = active_.number(12),
          .retries = static_cast<std::uint32_t>(active_.number(13)),
          .after = split(active_.text(14)),
          .agent = std::string(active_.text(15)),
          .progress = progress_of(active_)});
  }
}

StateCounts StoreReader::counts() {
  const Reading reading(counts_);
  StateCounts counts{};
  while (counts_.step()) counts.at(static_cast<std::size_t>(counts_.number(0))) = counts_.number(1);
  return counts;
}

TaskId StoreReader::newest() {
  const Reading reading(newest_);
  newest_.step();
  return static_cast<TaskId>(newest_.number(0));
}

void StoreReader::first_ended(const std::function<bool(const EndedTask&)>& each) {
  const Reading reading(first_ended_);
  while (first_ended_.step()) {
    const EndedTask task{.id = static_cast<TaskId>(first_ended_.number(0)),
                         .state = static_cast<State>(first_ended_.number(1)),
                         .attempts = static_cast<std::uint32_t>(first_ended_.number(2)),
                         .at = from_millis(first_ended_.number(3))};
    if (!each(task)) return;
  }
}

std::optional<std::string> StoreReader::recall(std::string_view name) {
  const Reading reading(recall_);
  if (!recall_.bind(1, name).step()) return std::nullopt;
  return std::string(recall_.text(0));
}

void StoreReader::each_remembered(std::string_view prefix, const EachRemembered& each) {
  const Reading reading(each_remembered_);
  each_remembered_.bind(1, prefix);
  while (each_remembered_.step() && each_remembered_.text(0).starts_with(prefix)) {
    each(each_remembered_.text(0), each_remembered_.text(1));
  }
}

void StoreReader::events_after(std::uint64_t seq, std::size_t limit, const std::function<void(Event)>& each) {
  const Reading reading(events_after_);
  events_after_.bind(1, static_cast<std::int64_t>(seq)).bind(2, static_cast<std::int64_t>(limit));
  while (events_after_.step()) each(event_of(events_after_));
}

void StoreReader::newest_events(const std::function<bool(Event)>& each) {
  const Reading reading(newest_events_);
  while (newest_events_.step() && each(event_of(newest_events_))) {
  }
}

}  // namespace duet::task
