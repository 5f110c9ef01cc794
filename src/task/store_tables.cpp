#include "task/store_tables.h"

#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>

#include <boost/json/object.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/time_text.h"

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
)",
    R"(
ALTER TABLE task ADD COLUMN in_group TEXT NOT NULL DEFAULT 'default';
ALTER TABLE task ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN not_before INTEGER;
ALTER TABLE task ADD COLUMN delay INTEGER;    -- milliseconds, if not_before comes from that
ALTER TABLE task ADD COLUMN labels TEXT;      -- a JSON object
ALTER TABLE task ADD COLUMN spared INTEGER NOT NULL DEFAULT 0;  -- attempts that do not count against retries
ALTER TABLE task ADD COLUMN key_body TEXT;    -- what the key stands for, if the task was edited since
CREATE INDEX task_by_group ON task(in_group, id) WHERE in_group<>'default';
CREATE INDEX task_with_after ON task(state, id) WHERE after IS NOT NULL;
ALTER TABLE task ADD COLUMN cpu_us INTEGER;         -- of all attempts, as far as it is known
ALTER TABLE task ADD COLUMN max_memory INTEGER;     -- bytes, of the attempt that had most
ALTER TABLE task ADD COLUMN output_bytes INTEGER;   -- of all attempts
ALTER TABLE task ADD COLUMN output_kept INTEGER NOT NULL DEFAULT 1;  -- 0: all of its output was let go
ALTER TABLE task ADD COLUMN output_gone INTEGER NOT NULL DEFAULT 0;  -- of so many attempts, from the first on
ALTER TABLE task ADD COLUMN output_gone_bytes INTEGER NOT NULL DEFAULT 0;  -- which was so much
UPDATE task SET after=NULL WHERE attempts>0;  -- from now on it has only what a task is not past
)"};

constexpr std::size_t version_with_events = 2;
constexpr std::size_t longest_body_in_row = 1024;  // of a task

constexpr std::string_view task_columns =
    "SELECT task.id, state, attempts, cancelling, retry_at, started_at, completed_at, pid, exit_code, signal,"
    " error_reason, error_message, priority, agent, prompt, prompt_cut, metadata, created_at, in_group, held,"
    " not_before,"
    " labels, spared, cpu_us, max_memory, output_bytes, output_gone_bytes,";

constexpr std::string_view active_columns =
    "SELECT id, state, attempts, cancelling, retry_at, started_at, completed_at, pid, exit_code, signal, error_reason,"
    " error_message, priority, retries, after, agent, in_group, held, not_before, delay, spared FROM task WHERE";

constexpr std::string_view last_id_name = "queue/last-id";

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

// Of three columns of a row from this one on.
std::optional<Usage> usage_of(const Statement& row, int at) {
  if (row.is_null(at)) return std::nullopt;
  return Usage{.cpu = std::chrono::microseconds(row.number(at)),
               .max_memory = static_cast<std::uint64_t>(row.number(at + 1)),
               .output_bytes = static_cast<std::uint64_t>(row.number(at + 2))};
}

Task task_of(const Statement& row) {
  Task task{.id = static_cast<TaskId>(row.number(0)), .progress = progress_of(row)};
  task.priority = row.number(12);
  task.agent = row.text(13);
  task.prompt = row.text(14);
  if (!rpc::is_valid_json(row.text(16))) throw SqliteError(SQLITE_CORRUPT, "the record of a task is damaged");
  task.metadata = rpc::parse_value(row.text(16)).as_object();
  task.created_at = from_millis(row.number(17));
  task.group = row.text(18);
  task.held = row.number(19) != 0 && !has_ended(task.progress.state);  // some ended ones were stored as held
  task.not_before = time_at(row, 20);
  if (!row.is_null(21)) task.labels = labels_of(rpc::parse_value(row.text(21)).as_object());
  task.progress.spared = static_cast<std::uint32_t>(row.number(22));
  task.usage = usage_of(row, 23);
  task.output_gone = row.number(26) > 0;
  if (!row.is_null(27)) task.result = row.text(27);
  return task;
}

Event event_of(const Statement& row) {
  Event event{.seq = static_cast<std::uint64_t>(row.number(0)),
              .kind = std::string(row.text(1)),
              .task = static_cast<TaskId>(row.number(2)),
              .params = std::string(row.text(3))};
  // What stands in a string has a backslash before its quotes, so this is a member.
  constexpr std::string_view created = "\"createdAt\":\"";
  const std::size_t found = event.kind == "taskQueued" ? event.params.find(created) : std::string::npos;
  if (found != std::string::npos) {
    event.arrived_at = parse_time(std::string_view(event.params).substr(found + created.size(), base::UtcText::size));
  }
  return event;
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

ActiveTask active_of(const Statement& row) {
  ActiveTask task{.id = static_cast<TaskId>(row.number(0)),
                  .priority = row.number(12),
                  .retries = static_cast<std::uint32_t>(row.number(13)),
                  .after = split(row.text(14)),
                  .agent = std::string(row.text(15)),
                  .group = std::string(row.text(16)),
                  .held = row.number(17) != 0,
                  .not_before = time_at(row, 18),
                  .progress = progress_of(row)};
  if (!row.is_null(19)) task.delay = std::chrono::milliseconds(row.number(19));
  task.progress.spared = static_cast<std::uint32_t>(row.number(20));
  return task;
}

/// A list's SQL, with what is bound to it. It outlives the statement's steps.
class ListText {
 public:
  explicit ListText(const ListQuery& query) : query_(query) {
    const bool rises = query.sort == ListQuery::Sort::oldest;
    if (query.sort == ListQuery::Sort::ended) condition("end_seq IS NOT NULL");
    if (query.state) where("state=?", static_cast<std::int64_t>(*query.state));
    if (query.from) where(rises ? "task.id>?" : "task.id<?", number_of(*query.from));
    if (query.since) where("created_at>=?", to_millis(*query.since));
    // What a partial index has is said as the index says it.
    if (query.group)
      where(*query.group == default_group ? "in_group=?" : "in_group<>'default' AND in_group=?", *query.group);
    if (query.agent) where("agent=?", *query.agent);
    for (const auto& [name, value] : query.labels) {
      where("EXISTS(SELECT 1 FROM json_each(labels) WHERE key=?", name);
      sql_ += " AND value=?)";
      values_.emplace_back(value);
    }
  }

  std::string sql() const {
    return std::string(task_columns) + " substr(bytes, -" + std::to_string(StoreReader::most_listed) +
           ") FROM task LEFT JOIN result USING(id)" + sql_ + " ORDER BY " + std::string(order()) + " LIMIT " +
           std::to_string(query_.limit);
  }

  void bind(Statement& statement) const {
    int at = 0;
    for (const auto& value : values_) {
      ++at;
      std::visit([&](const auto& bound) { statement.bind(at, bound); }, value);
    }
  }

 private:
  std::string_view order() const {
    switch (query_.sort) {
      case ListQuery::Sort::oldest:
        return "task.id";
      case ListQuery::Sort::priority:
        return "priority DESC, task.id";
      case ListQuery::Sort::ended:
        return "end_seq DESC, completed_at DESC";
      default:
        return "task.id DESC";
    }
  }
  void condition(std::string_view text) {
    sql_ += sql_.empty() ? " WHERE " : " AND ";
    sql_ += text;
  }
  void where(std::string_view text, std::variant<std::int64_t, std::string> value) {
    condition(text);
    values_.push_back(std::move(value));
  }

  const ListQuery& query_;
  std::string sql_;
  std::vector<std::variant<std::int64_t, std::string>> values_;
};

std::optional<std::string> labels_text(const Labels& labels) {
  return labels.empty() ? std::nullopt : std::optional(rpc::to_text(to_json(labels)));
}

std::optional<std::int64_t> count_of(const std::optional<std::chrono::milliseconds>& time) {
  return time ? std::optional<std::int64_t>(time->count()) : std::nullopt;
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
                           " after, created_at, body, in_group, not_before, delay, labels, attempts, cancelling)"
                           " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,0)")),
      insert_request_(database.prepare("INSERT INTO request(id, body) VALUES(?,?)")),
      update_(database.prepare("UPDATE task SET state=?, attempts=?, cancelling=?, retry_at=?, started_at=?,"
                               " completed_at=?, pid=?, exit_code=?, signal=?, error_reason=?, error_message=?,"
                               " end_seq=?, spared=?, output_kept=max(output_kept, ?1=1),"
                               " held=CASE WHEN ?1>=2 THEN 0 ELSE held END,"  // nobody keeps an ended one from starting
                               " after=CASE WHEN ?2>attempts THEN NULL ELSE after END WHERE id=?")),
      set_result_(database.prepare("INSERT OR REPLACE INTO result(id, bytes) VALUES(?,?)")),
      set_held_(database.prepare("UPDATE task SET held=? WHERE id=?")),
      forget_delay_(database.prepare("UPDATE task SET not_before=NULL, delay=NULL WHERE id=?")),
      edit_(database.prepare(
          "UPDATE task SET key_body=CASE WHEN key IS NULL THEN NULL ELSE coalesce(key_body, body,"
          " (SELECT request.body FROM request WHERE request.id=task.id)) END, priority=?, prompt=?, prompt_cut=?,"
          " metadata=?, after=?, in_group=?, not_before=?, delay=?, labels=?, body=? WHERE id=?")),
      replace_request_(database.prepare("INSERT OR REPLACE INTO request(id, body) VALUES(?,?)")),
      add_usage_(database.prepare("UPDATE task SET cpu_us=coalesce(cpu_us, 0)+?2,"
                                  " max_memory=max(coalesce(max_memory, 0), ?3),"
                                  " output_bytes=coalesce(output_bytes, 0)+?4, output_kept=1 WHERE id=?1"
                                  " RETURNING cpu_us, max_memory, output_bytes")),
      let_go_(database.prepare("UPDATE task SET output_kept=0, output_gone=?2, output_gone_bytes=output_gone_bytes+?3"
                               " WHERE id=?1")),
      erase_{database.prepare("DELETE FROM task WHERE id=?"), database.prepare("DELETE FROM request WHERE id=?"),
             database.prepare("DELETE FROM result WHERE id=?")},
      remember_(database.prepare("INSERT OR REPLACE INTO remembered(name, value) VALUES(?,?)")),
      forget_(database.prepare("DELETE FROM remembered WHERE name=?")),
      tell_(database.prepare("INSERT INTO event(seq, kind, task, params) VALUES(?,?,?,?)")),
      trim_(database.prepare("DELETE FROM event WHERE seq<?")),
      last_seq_(static_cast<std::uint64_t>(database.number("SELECT max(seq) FROM event"))) {}

void StoreWriter::insert(const NewTask& task) {
  const std::string_view beginning = rpc::first_bytes(task.prompt, StoreReader::most_listed);
  insert_.bind(1, number_of(task.id)).bind(2, static_cast<std::int64_t>(State::queued)).bind(3, task.priority);
  insert_.bind(4, task.agent).bind(5, beginning).bind(6, std::int64_t{beginning.size() < task.prompt.size()});
  const std::string after = joined(task.after);
  insert_.bind(7, task.metadata).bind(8, or_null(task.key)).bind(9, std::int64_t{task.retries});
  const bool is_short = task.body.size() <= longest_body_in_row;
  insert_.bind(10, or_null(after)).bind(11, to_millis(task.created_at));
  insert_.bind(12, or_null(is_short ? std::string_view(task.body) : std::string_view()));
  const std::optional<std::string> labels = labels_text(task.labels);
  insert_.bind(13, task.group).bind(14, to_millis(task.not_before)).bind(15, count_of(task.delay));
  insert_.bind(16, labels).run();
  if (!is_short) insert_request_.bind(1, number_of(task.id)).bind(2, task.body).run();
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
  update_.bind(13, std::int64_t{progress.spared}).bind(14, number_of(id)).run();
}

void StoreWriter::erase_result(TaskId id) { erase_.at(2).bind(1, number_of(id)).run(); }

void StoreWriter::set_held(TaskId id, bool held) { set_held_.bind(1, std::int64_t{held}).bind(2, number_of(id)).run(); }

void StoreWriter::forget_delay(TaskId id) { forget_delay_.bind(1, number_of(id)).run(); }

void StoreWriter::edit(const Edited& edited) {
  const Task& task = edited.task;
  const std::string_view beginning = rpc::first_bytes(task.prompt, StoreReader::most_listed);
  const std::string metadata = rpc::to_text(task.metadata);
  const std::string after = joined(edited.active.after);
  const std::optional<std::string> labels = labels_text(task.labels);
  const bool is_short = edited.body.size() <= longest_body_in_row;
  edit_.bind(1, task.priority).bind(2, beginning).bind(3, std::int64_t{beginning.size() < task.prompt.size()});
  edit_.bind(4, metadata).bind(5, or_null(after)).bind(6, task.group).bind(7, to_millis(task.not_before));
  edit_.bind(8, count_of(edited.active.delay)).bind(9, labels);
  edit_.bind(10, or_null(is_short ? std::string_view(edited.body) : std::string_view())).bind(11, number_of(task.id));
  edit_.run();
  if (is_short) {
    erase_.at(1).bind(1, number_of(task.id)).run();
  } else {
    replace_request_.bind(1, number_of(task.id)).bind(2, edited.body).run();
  }
}

void StoreWriter::keep_last_id(TaskId id) {
  const std::string number = std::to_string(id);
  remember(last_id_name, number);
}

void StoreWriter::set_result(TaskId id, std::string_view result) {
  set_result_.bind(1, number_of(id)).bind_bytes(2, result).run();
}

Usage StoreWriter::add_usage(TaskId id, const Usage& usage) {
  const Reading reading(add_usage_);
  add_usage_.bind(1, number_of(id)).bind(2, std::int64_t{usage.cpu.count()});
  add_usage_.bind(3, static_cast<std::int64_t>(usage.max_memory));
  add_usage_.bind(4, static_cast<std::int64_t>(usage.output_bytes));
  if (!add_usage_.step()) return usage;
  const Usage all = usage_of(add_usage_, 0).value_or(usage);
  add_usage_.step();  // to its end
  return all;
}

void StoreWriter::let_go_of_output(TaskId id, const GoneOutput& gone) {
  let_go_.bind(1, number_of(id)).bind(2, std::int64_t{gone.attempts});
  let_go_.bind(3, static_cast<std::int64_t>(gone.bytes)).run();
}

void StoreWriter::erase(TaskId id) {
  for (Statement& statement : erase_) statement.bind(1, number_of(id)).run();
}

void StoreWriter::remember(std::string_view name, std::string_view value) {
  remember_.bind(1, name).bind(2, value).run();
}

void StoreWriter::forget(std::string_view name) { forget_.bind(1, name).run(); }

void StoreWriter::tell(std::string_view kind, TaskId task, rpc::ObjectText params,
                       std::optional<base::UtcTime> arrived_at) {
  const std::uint64_t seq = last_seq_ + 1;
  told_.push_back({.seq = seq,
                   .kind = std::string(kind),
                   .task = task,
                   .params = params.add("seq", seq).take(),
                   .arrived_at = arrived_at});
  last_seq_ = seq;
  const Event& told = told_.back();
  tell_.bind(1, static_cast<std::int64_t>(told.seq)).bind(2, told.kind).bind(3, number_of(task)).bind(4, told.params);
  tell_.run();
}

std::string_view StoreWriter::text_of(base::UtcTime time) {
  times_.write(time_text_.data(), time);
  return {time_text_.data(), time_text_.size()};
}

void StoreWriter::trim_events(std::uint64_t oldest) { trim_.bind(1, static_cast<std::int64_t>(oldest)).run(); }

std::vector<Event> StoreWriter::take_told() { return std::exchange(told_, {}); }

void StoreWriter::take_back_told() {
  last_seq_ -= told_.size();
  told_.clear();
}

StoreReader::StoreReader(const Database& database)
    : database_(database),
      find_(database.prepare(select(task_columns, " bytes FROM task LEFT JOIN result USING(id) WHERE task.id=?"))),
      standing_(database.prepare("SELECT state, attempts, output_gone, output_gone_bytes FROM task WHERE id=?")),
      find_key_(database.prepare("SELECT task.id, state, coalesce(key_body, task.body, request.body)"
                                 " FROM task LEFT JOIN request USING(id) WHERE key=?")),
      body_(database.prepare("SELECT coalesce(task.body, request.body)"
                             " FROM task LEFT JOIN request USING(id) WHERE task.id=?")),
      list_(database.prepare(select(task_columns,
                                    " substr(bytes, -?3) FROM task LEFT JOIN result USING(id)"
                                    " WHERE task.id<?1 ORDER BY task.id DESC LIMIT ?2"))),
      list_by_state_(database.prepare(select(task_columns,
                                             " substr(bytes, -?3) FROM task LEFT JOIN result USING(id)"
                                             " WHERE task.id<?1 AND state=?4 ORDER BY task.id DESC LIMIT ?2"))),
      active_(database.prepare(select(active_columns, " state IN (0, 1) ORDER BY id"))),
      find_active_(database.prepare(select(active_columns, " state IN (0, 1) AND id=?"))),
      counts_(database.prepare("SELECT state, count(*) FROM task GROUP BY state")),
      newest_(database.prepare("SELECT max((SELECT coalesce(max(id), 0) FROM task), coalesce((SELECT CAST(value AS"
                               " INTEGER) FROM remembered WHERE name='queue/last-id'), 0))")),
      first_ended_(database.prepare("SELECT id, state, attempts, completed_at, output_gone, end_seq FROM task"
                                    " WHERE end_seq IS NOT NULL AND end_seq>=? ORDER BY end_seq, completed_at")),
      first_with_output_(database.prepare("SELECT id, state, attempts, completed_at, output_gone, end_seq FROM task"
                                          " WHERE end_seq IS NOT NULL AND end_seq>=? AND output_kept=1"
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
  return Standing{.state = static_cast<State>(standing_.number(0)),
                  .attempts = static_cast<std::uint32_t>(standing_.number(1)),
                  .gone = {.attempts = static_cast<std::uint32_t>(standing_.number(2)),
                           .bytes = static_cast<std::uint64_t>(standing_.number(3))}};
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

void StoreReader::list(const ListQuery& query, const std::function<bool(const Task&)>& each) {
  ListText text(query);
  Statement statement = database_.prepare(text.sql());
  text.bind(statement);
  while (statement.step() && each(task_of(statement))) {
  }
}

void StoreReader::each_active(const std::function<void(ActiveTask)>& each) {
  const Reading reading(active_);
  while (active_.step()) each(active_of(active_));
}

std::optional<ActiveTask> StoreReader::find_active(TaskId id) {
  const Reading reading(find_active_);
  return find_active_.bind(1, number_of(id)).step() ? std::optional(active_of(find_active_)) : std::nullopt;
}

std::map<TaskId, TaskId> StoreReader::needed() {
  Statement statement = database_.prepare("SELECT id, after FROM task WHERE state=0 AND after IS NOT NULL ORDER BY id");
  std::map<TaskId, TaskId> needed;
  while (statement.step()) {
    for (const TaskId id : split(statement.text(1))) needed.try_emplace(id, static_cast<TaskId>(statement.number(0)));
  }
  return needed;
}

std::vector<TaskId> StoreReader::after(TaskId id) {
  Statement statement = database_.prepare("SELECT after FROM task WHERE id=? AND after IS NOT NULL");
  return statement.bind(1, number_of(id)).step() ? split(statement.text(0)) : std::vector<TaskId>();
}

std::vector<TaskId> StoreReader::dependents(TaskId id) {
  Statement statement = database_.prepare("SELECT id, after FROM task WHERE state=0 AND after IS NOT NULL ORDER BY id");
  std::vector<TaskId> dependents;
  while (statement.step()) {
    const std::vector<TaskId> after = split(statement.text(1));
    if (std::ranges::find(after, id) != after.end()) dependents.push_back(static_cast<TaskId>(statement.number(0)));
  }
  return dependents;
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

std::vector<TaskId> StoreReader::ended(std::optional<State> state, std::optional<base::UtcTime> before) {
  Statement statement = database_.prepare(
      "SELECT id FROM task WHERE end_seq IS NOT NULL AND (?1 IS NULL OR state=?1) AND (?2 IS NULL OR completed_at<?2)"
      " ORDER BY id");
  statement.bind(1, state ? std::optional(static_cast<std::int64_t>(*state)) : std::nullopt);
  statement.bind(2, to_millis(before));
  std::vector<TaskId> ids;
  while (statement.step()) ids.push_back(static_cast<TaskId>(statement.number(0)));
  return ids;
}

void StoreReader::first_ended(std::uint64_t from, const std::function<bool(const EndedTask&)>& each) {
  first_ended_.bind(1, static_cast<std::int64_t>(from));
  read_ended(first_ended_, each);
}

void StoreReader::first_with_output(std::uint64_t from, const std::function<bool(const EndedTask&)>& each) {
  first_with_output_.bind(1, static_cast<std::int64_t>(from));
  read_ended(first_with_output_, each);
}

void StoreReader::read_ended(Statement& statement, const std::function<bool(const EndedTask&)>& each) {
  const Reading reading(statement);
  while (statement.step()) {
    const EndedTask task{.id = static_cast<TaskId>(statement.number(0)),
                         .state = static_cast<State>(statement.number(1)),
                         .attempts = static_cast<std::uint32_t>(statement.number(2)),
                         .at = from_millis(statement.number(3)),
                         .output_gone = static_cast<std::uint32_t>(statement.number(4)),
                         .end_seq = static_cast<std::uint64_t>(statement.number(5))};
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
