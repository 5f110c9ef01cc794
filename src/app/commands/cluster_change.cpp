// cluster set, drain, undrain and forget: what people change of a queue.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "app/commands/cluster_place.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/view/display_text.h"
#include "app/words/bytes.h"
#include "app/words/near_miss.h"
#include "app/words/number.h"
#include "duet/base/fd.h"
#include "duet/rpc/value.h"
#include "task/postgres/records.h"

namespace duet::app {
namespace {

using namespace task::postgres;
using boost::json::object;
using Text = std::string_view;

struct QueueSetting {
  Text name;
  std::uint64_t least;
  std::uint64_t most;
};
constexpr QueueSetting queue_settings[] = {
    {"queue_capacity", 1, 10'000'000},
    {"keep_days", 1, 36'500},
    {"keep_tasks", 1, 10'000'000},
    {"keep_output", 0, std::uint64_t{1} << 50U},
};

const QueueSetting& setting_called(Text name) {
  std::vector<Text> names;
  for (const QueueSetting& known : queue_settings) {
    if (known.name == name) return known;
    names.push_back(known.name);
  }
  const Text meant = near_miss(std::string(name), names);
  throw Failure("a queue has no setting '" + std::string(name) + "'" +
                (meant.empty() ? "" : " (did you mean '" + std::string(meant) + "'?)") + ": it has " +
                one_of(names, "and"));
}

// A number in its bounds; that of bytes also as people write it.
std::string checked_value(const QueueSetting& setting, const std::string& value) {
  const std::optional<std::uint64_t> number = parse_bytes(value);
  const bool is_plain = value.find_first_not_of("0123456789") == std::string::npos;
  const bool fits = number && *number >= setting.least && *number <= setting.most;
  if (fits && (is_plain || setting.name == "keep_output")) return std::to_string(*number);
  throw Failure(std::string(setting.name) + " is '" + value + "': it must be from " + std::to_string(setting.least) +
                " to " + std::to_string(setting.most) + (setting.name == "keep_output" ? " bytes, such as 2G" : ""));
}

// Without a name it is this machine's own.
std::string worker_named(const CommandLine& line, const task::ClusterSettings& cluster) {
  return line.arguments.empty() ? cluster.name : line.arguments.front();
}

int drain(const CommandLine& line, bool draining) {
  const task::ClusterSettings cluster = shared_queue(line);
  const std::string name = worker_named(line, cluster);
  const auto session = open_own_queue(line, cluster);
  const std::string answer = call_queue(*session, cluster, "drain_v1", {name, argument_of(draining)});
  const std::string outcome = queue_outcome(answer);
  if (outcome == "unknown")
    throw Failure("the queue has no worker '" + name + "'; 'duet-rpc cluster status' shows them");
  if (line.flag("json")) return print_text(answer + '\n');
  const std::string before = draining ? " drains already\n" : " was not draining\n";
  const std::string now = draining ? " drains: what runs there goes on, nothing new starts\n" : " takes tasks again\n";
  return print_text("worker " + name + (outcome == "same" ? before : now));
}

// Where no other worker is, nobody has found out that this one is gone: its beat is watched for its whole lease.
std::string forget_unmoved(AdminSession& session, const CommandLine& line, const task::ClusterSettings& cluster,
                           const std::string& name, std::string answer) {
  const object first = rpc::parse_value(answer).as_object();
  const std::int64_t beat = number_in(first, "beat");
  const std::chrono::milliseconds lease(number_in(first, "lease"));
  const std::string seconds = std::to_string(std::chrono::ceil<std::chrono::seconds>(lease).count()) + " s";
  const auto most = line.duration("timeout");
  if (most && *most < lease) {
    throw Failure("nobody has found worker " + name + " silent: its beat must be watched for " + seconds +
                  ", for which --timeout gives no time");
  }
  const std::string note = "nobody has found worker " + name + " silent: its beat is watched for " + seconds + "\n";
  [[maybe_unused]] const bool written = base::write_all(STDERR_FILENO, harmless_lines(note));
  const auto end = std::chrono::steady_clock::now() + lease;
  while (queue_outcome(answer) == "live" && number_in(rpc::parse_value(answer).as_object(), "beat") == beat) {
    const bool is_over = std::chrono::steady_clock::now() >= end;
    if (!is_over) std::this_thread::sleep_for(std::chrono::seconds(1));
    answer = call_queue(session, cluster, "forget_v1", {name, is_over ? argument_of(beat) : Argument()});
  }
  return answer;
}

}  // namespace

int run_cluster_set(const CommandLine& line) {
  const task::ClusterSettings cluster = shared_queue(line);
  std::vector<std::pair<std::string, std::string>> changes;
  for (const std::string& pair : line.arguments) {
    const std::string name = pair.substr(0, pair.find('='));
    if (pair.find('=') == pair.npos)
      throw Failure(std::string(setting_called(name).name) + " needs a value: " + name + "=NUMBER");
    changes.emplace_back(name, checked_value(setting_called(name), pair.substr(pair.find('=') + 1)));
  }
  const auto session = open_own_queue(line, cluster);
  const auto run = [&](const char* sql) {
    if (const Answer answer = session->run(sql); !answer) throw Failure(answer.error().message);
  };
  run("BEGIN");
  object all;
  for (const auto& [name, value] : changes) {
    call_queue(*session, cluster, "set_v1", {name, value});
    all[name] = rpc::parse_value(value);
  }
  run("COMMIT");
  if (line.flag("json")) return print_text(rpc::to_text(all) + '\n');
  std::string out;
  for (const auto& [name, value] : changes) out.append(name).append(" is ").append(value).append(" now\n");
  return print_text(out);
}

int run_cluster_drain(const CommandLine& line) { return drain(line, true); }
int run_cluster_undrain(const CommandLine& line) { return drain(line, false); }

int run_cluster_forget(const CommandLine& line) {
  const task::ClusterSettings cluster = shared_queue(line);
  const std::string& name = line.arguments.front();
  const auto session = open_own_queue(line, cluster);
  std::string answer = call_queue(*session, cluster, "forget_v1", {name, Argument()});
  if (queue_outcome(answer) == "live") answer = forget_unmoved(*session, line, cluster, name, answer);
  const std::string outcome = queue_outcome(answer);
  if (outcome == "unknown")
    throw Failure("the queue has no worker '" + name + "'; 'duet-rpc cluster status' shows them");
  if (outcome == "live")
    throw Failure("worker " + name + " is live: stop its daemon with 'duet-rpc daemon stop' on its machine");
  if (line.flag("json")) return print_text(answer + '\n');
  return print_text("worker " + name + " is forgotten\n");
}

}  // namespace duet::app
