#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/refusal_text.h"
#include "app/client/task_end.h"
#include "app/commands/commands.h"
#include "app/commands/record_printer.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

constexpr std::size_t page_size = 10'000;
constexpr std::size_t most_at_once = 256;
constexpr int has_ended_code = -32001;

// All tasks in a state, the newest first.
std::vector<std::string> ids_in_state(DaemonClient& daemon, const std::string& state) {
  std::vector<std::string> ids;
  for (;;) {
    object params{{"state", state}, {"limit", page_size}};
    if (!ids.empty()) params["before"] = ids.back();
    const boost::json::value page = rpc::parse_value(daemon.call_raw("task.list", rpc::to_text(params)));
    if (page.as_array().empty()) return ids;
    for (const boost::json::value& record : page.as_array()) ids.push_back(member_text(record.as_object(), "id"));
  }
}

/// Tells tasks to end, many at once, so that they share what a commit costs.
class Cancelling {
 public:
  Cancelling(DaemonClient& daemon, const CommandLine& line) : daemon_(daemon), line_(line) {}

  // `all`: one that has ended meanwhile is no fault.
  void tell(const std::vector<std::string>& ids, bool all) {
    for (std::size_t begin = 0; begin < ids.size(); begin += most_at_once) {
      tell_some({ids.begin() + static_cast<std::ptrdiff_t>(begin),
                 ids.begin() + static_cast<std::ptrdiff_t>(std::min(begin + most_at_once, ids.size()))},
                all);
    }
  }

  int code() const { return code_; }
  const std::vector<std::string>& told() const { return told_; }

 private:
  void tell_some(const std::vector<std::string>& ids, bool all) {
    daemon_.connect();
    std::vector<peer::Outcome> outcomes(ids.size());
    std::size_t answered = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto take = [&outcomes, &answered, i](const peer::Outcome& outcome) {
        outcomes[i] = outcome;
        ++answered;
      };
      daemon_.client().call_later("task.cancel", object{{"taskId", ids[i]}}, take, daemon_.patience());
    }
    daemon_.client().wait_for([&] { return answered == ids.size(); }, base::Duration::max());
    for (std::size_t i = 0; i < ids.size(); ++i) take_outcome(ids[i], outcomes[i], all);
  }

  void take_outcome(const std::string& id, const peer::Outcome& outcome, bool all) {
    using Cause = peer::Outcome::Cause;
    if (outcome.cause == Cause::answered) {
      if (line_.flag("json")) print_text(outcome.result + '\n');
      return told_.push_back(id);
    }
    if (all && outcome.error && outcome.error->code() == has_ended_code) return;
    const Failure failure = DaemonClient::failure_of("task.cancel", outcome);
    if (outcome.cause != Cause::refused) throw failure;
    print_aside(std::string(line_.program) + ": " + failure.what() + '\n');
    code_ = failure.code();
  }

  DaemonClient& daemon_;
  const CommandLine& line_;
  std::vector<std::string> told_;
  int code_ = 0;
};

// One that is gone by now has ended: the settings keep a certain number, or somebody has removed it.
void print_end(const std::string& id, const peer::Outcome& outcome, const RecordPrinter& printer) {
  const bool is_gone = is_unknown_task(outcome);
  if (!is_gone && outcome.cause != peer::Outcome::Cause::answered) throw DaemonClient::failure_of("task.wait", outcome);
  const object record =
      is_gone ? object{{"id", id}, {"state", "cancelled"}} : rpc::parse_value(outcome.result).as_object();
  printer.has_format() ? printer.print_formatted(record) : void(print_text(cancel_line(record) + '\n'));
}

// Most tasks end at once when they are told to: they are given a moment, so that the word for them is the last one.
void print_ends(DaemonClient& daemon, const std::vector<std::string>& ids, const RecordPrinter& printer) {
  // Not longer than the answer may take.
  std::chrono::duration<double> moment = std::min<std::chrono::duration<double>>(
      std::chrono::seconds(1), std::chrono::duration<double>(daemon.patience()) / 2);
  const auto deadline = std::chrono::steady_clock::now() + moment;
  for (const std::string& id : ids) {
    const object params{{"taskId", id}, {"timeoutSeconds", std::max(moment.count(), 0.0)}};
    const peer::Outcome outcome = daemon.ask("task.wait", rpc::to_text(params), daemon.patience());
    print_end(id, outcome, printer);
    moment = deadline - std::chrono::steady_clock::now();
  }
}

void check_cancel(const CommandLine& line) {
  const bool all = line.flag("all");
  if (all && !line.arguments.empty()) throw Failure("--all means every task: it takes no ID");
  if (!all && line.text("state")) throw Failure("--state goes with --all");
  if (!all && line.arguments.empty()) throw Failure("ID is missing: name the tasks, or all of them with --all");
}

// Those that wait first: each would take the slot of a running one.
std::vector<std::string> states_to_cancel(const CommandLine& line) {
  const std::optional<std::string> state = line.text("state");
  return state ? std::vector{*state} : std::vector<std::string>{"queued", "running"};
}

}  // namespace

// One that cannot be cancelled does not keep the others from it.
int run_task_cancel(const CommandLine& line) {
  check_cancel(line);
  const RecordPrinter printer(line);
  DaemonClient daemon(line);
  Cancelling cancelling(daemon, line);
  if (line.flag("all")) {
    for (const std::string& state : states_to_cancel(line)) cancelling.tell(ids_in_state(daemon, state), true);
  } else {
    cancelling.tell(line.arguments, false);
  }
  if (line.flag("json")) return cancelling.code();
  print_ends(daemon, cancelling.told(), printer);
  if (line.flag("all") && cancelling.told().empty() && printer.is_for_people()) print_text("nothing to cancel\n");
  return cancelling.code();
}

}  // namespace duet::app
