#include "task/old_events.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

#include "duet/base/fd.h"
#include "duet/rpc/value.h"
#include "process/process_tree.h"
#include "task/store_tables.h"

namespace duet::task {
namespace {

using boost::json::object;
using boost::json::value;

constexpr char old_file[] = "events.log";

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> room;
  ssize_t count = 0;
  while ((count = read(fd, room.data(), room.size())) > 0) text.append(room.data(), static_cast<std::size_t>(count));
  base::check_call(static_cast<int>(count), old_file);
  return text;
}

std::string text_in(const object& fields, std::string_view name) {
  const value* const found = fields.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

std::uint64_t number_in(const object& fields, std::string_view name) {
  const value* const found = fields.if_contains(name);
  boost::json::error_code error;
  return found == nullptr ? 0 : found->to_number<std::uint64_t>(error);
}

/// What the file says: a line with the epoch, a line for each event, and one more if it was closed.
class OldEvents {
 public:
  explicit OldEvents(std::string_view text) {
    // A line without its end was being written when the daemon was killed: nobody has been told of it.
    for (std::size_t end = 0; whole_ && (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      whole_ = take_line(text.substr(0, end));
    }
  }

  /// None: its numbers may have been given to other events, too.
  std::optional<std::string> epoch() const { return whole_ && complete_ ? std::optional(epoch_) : std::nullopt; }
  const std::vector<Event>& events() const { return events_; }

 private:
  bool take_line(std::string_view line) {
    boost::json::error_code error;
    const value parsed = boost::json::parse({line.data(), line.size()}, error);
    const object* const fields = error ? nullptr : parsed.if_object();
    if (fields == nullptr) return false;
    if (epoch_.empty()) return take_head(*fields);
    if (fields->contains("closed")) return complete_ = true;
    return take_event(*fields);
  }

  bool take_head(const object& fields) {
    epoch_ = text_in(fields, "epoch");
    complete_ = text_in(fields, "boot") == process::boot_id();  // the same boot: what was written is all there
    return !epoch_.empty();
  }

  bool take_event(const object& fields) {
    const value* const params = fields.if_contains("params");
    Event event{.seq = number_in(fields, "seq"), .kind = text_in(fields, "kind")};
    const bool in_order = events_.empty() ? event.seq > 0 : event.seq == events_.back().seq + 1;
    if (!in_order || params == nullptr || !params->is_object()) return false;
    event.task = parse_task_id(text_in(params->get_object(), "taskId")).value_or(0);
    event.params = rpc::to_text(*params);
    events_.push_back(std::move(event));
    return true;
  }

  bool whole_ = true;
  bool complete_ = false;
  std::string epoch_;
  std::vector<Event> events_;
};

}  // namespace

void take_over_events(const Database& database, int folder) {
  const base::Fd file(openat(folder, old_file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return;
  base::check_call(file.get(), old_file);
  const OldEvents old(read_all(file.get()));
  Statement add = database.prepare("INSERT INTO event(seq, kind, task, params) VALUES(?,?,?,?)");
  for (const Event& event : old.events()) {
    add.bind(1, static_cast<std::int64_t>(event.seq)).bind(2, event.kind);
    add.bind(3, static_cast<std::int64_t>(event.task)).bind(4, event.params).run();
  }
  if (const auto epoch = old.epoch()) {
    database.prepare("UPDATE remembered SET value=? WHERE name='epoch'").bind(1, *epoch).run();
  }
}

void remove_old_events(int folder) {
  for (const char* name : {old_file, "events.log.new"}) unlinkat(folder, name, 0);
}

}  // namespace duet::task
