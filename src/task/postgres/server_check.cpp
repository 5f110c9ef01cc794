#include "task/postgres/server_check.h"

#include <optional>

#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

using boost::json::object;
using Kind = Objection::Kind;

constexpr std::int64_t most_forgotten_ms = 60'000;  // of events that a server may lack that we have seen

std::optional<Objection> check_version(const object& hello) {
  const std::string version = std::to_string(number_in(hello, "version"));
  const std::int64_t oldest = number_in(hello, "oldest");
  if (number_in(hello, "version") < queue_protocol)
    return Objection{Kind::version, "its schema is of version " + version + ": run 'cluster migrate'"};
  if (oldest <= queue_protocol) return std::nullopt;
  return Objection{Kind::version, "its schema is of version " + version + " and serves programs of protocol " +
                                      std::to_string(oldest) + " and newer; this one speaks " +
                                      std::to_string(queue_protocol) + ": upgrade it"};
}

std::optional<Objection> check_system(const object& hello, const WorkerMemory& memory) {
  if (!flag_in(hello, "adopted")) {
    return Objection{Kind::copy,
                     "the queue was made on another server or in another database, of which this is a copy: if this is "
                     "to be the queue from now on, run 'cluster adopt'"};
  }
  if (memory.queue != text_in(hello, "queue") || memory.system == text_in(hello, "system")) return std::nullopt;
  return Objection{Kind::copy, "the server has another system identifier than the one this daemon has seen"};
}

// Of the server that the queue belongs to: on another one timelines begin anew.
std::optional<Objection> check_past(const object& hello, const WorkerMemory& memory) {
  const std::int64_t timeline = number_in(hello, "serverTimeline");
  const bool is_known = memory.queue == text_in(hello, "queue");
  const std::string now = "the server is on timeline " + std::to_string(timeline);
  if (is_known && timeline < memory.timeline) {
    return Objection{Kind::old_primary,
                     now + ", and this daemon has seen " + std::to_string(memory.timeline) + ": it is an old primary"};
  }
  if (const std::int64_t known = number_in(hello, "timeline"); timeline < known) {
    return Objection{Kind::old_primary,
                     now + ", and the queue was on " + std::to_string(known) + ": it is an old primary"};
  }
  const bool lacks_events = number_in(hello, "newestEventMs") + most_forgotten_ms < memory.newest_event_ms;
  if (!is_known || timeline != memory.timeline || !lacks_events) return std::nullopt;
  return Objection{Kind::backup,
                   "the server lacks events that this daemon has seen: it is an old backup; if it is to be the queue "
                   "from now on, run 'cluster adopt'"};
}

}  // namespace

std::vector<Objection> objections_to(const object& hello, const WorkerMemory& memory, const std::string& project) {
  if (flag_in(hello, "recovery")) return {{Kind::standby, "the server is a standby"}};
  std::vector<Objection> all;
  const auto add = [&all](const std::optional<Objection>& objection) {
    if (objection) all.push_back(*objection);
    return objection.has_value();
  };
  add(check_version(hello));
  if (const std::string theirs = text_in(hello, "project"); theirs != project) {
    add(Objection{Kind::project,
                  "its queue is that of the project '" + theirs + "', and [cluster] project is '" + project + "'"});
  }
  if (!add(check_system(hello, memory))) add(check_past(hello, memory));
  return all;
}

}  // namespace duet::task::postgres
