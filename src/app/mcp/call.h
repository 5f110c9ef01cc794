#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/mcp/client.h"
#include "app/mcp/desk.h"
#include "app/mcp/revision.h"
#include "app/mcp/scope.h"
#include "app/mcp/source_cache.h"
#include "app/mcp/tail_cache.h"
#include "app/mcp/task_watch.h"
#include "app/mcp/tool_result.h"
#include "app/mcp/tool_table.h"
#include "duet/base/log.h"
#include "duet/peer/reply.h"

namespace duet::app::mcp {

class Call;

/// What calls need to do their work; the door has it.
struct Services {
  transport::Loop& loop;
  base::Log& log;
  Desk& desk;
  Scope& scope;
  const ToolTable& tools;
  TaskWatch& tasks;
  SourceCache sources = {};
  TailCache tails = {};
  std::optional<std::vector<std::string>> agents = {};  ///< that are offered; none: those of the settings
  std::function<std::optional<std::vector<std::string>>()> agents_of_settings = {};
  std::vector<Call*> calls = {};  ///< that are under way
  bool is_ending = false;         ///< nothing is waited for any more
};

/// One request that asks the daemon before it is answered: it has a time within which it is answered, is cancelled as a
/// whole, and tells of its progress if that is wanted. The steps of a tool are callbacks of ask(); none comes after the
/// answer or the cancel. What goes wrong with the daemon ends the call by itself, and so does an exception of a step,
/// which is logged.
class Call : public std::enable_shared_from_this<Call> {
 public:
  static constexpr std::chrono::seconds longest{54};  // so that the answer is out within 55 s

  /// How failures are told: as the result of a tool, or as an error.
  enum class Kind : std::uint8_t { tool, request };
  using Parts = std::vector<Desk::PartAnswer>;

  Call(Services& services, Kind kind, std::shared_ptr<const Client> client, Envelope envelope, peer::Reply<> reply);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  /// Its time runs from here; `unlimited` for what waits as long as it takes.
  void begin(bool unlimited = false);
  /// Does a step: what it throws is logged and ends the call.
  void guard(const std::function<void()>& step);

  Services& services() { return services_; }
  const Envelope& envelope() const { return envelope_; }
  bool is_over() const { return over_; }
  base::TimePoint deadline() const { return deadline_; }

  /// The root of home; empty if there is none, and then the call has been answered.
  std::string home();

  struct How {
    bool is_about_code = false;
    bool may_start = true;
    bool keeps_refusals = false;  ///< else the first one ends the call
    /// Takes a failure (no daemon, no answer in time) instead of ending the call.
    std::function<void(const ToolError&)> on_failure = {};
    std::chrono::seconds patience = longest;  ///< the daemon's answer may take so long
  };
  void ask(const std::string& root, std::vector<Desk::Part> parts, How how, std::function<void(const Parts&)> then);
  /// One question, and its result.
  void ask(const std::string& root, std::string method, boost::json::object params, How how,
           std::function<void(const boost::json::value&)> then);

  /// Waits until a task of home has ended, or for so long, without a connection; `then` gets its record.
  void wait_for_end(const std::string& task, std::optional<std::chrono::seconds> patience,
                    std::function<void(const boost::json::object& record)> then);
  bool is_waiting() const { return waiting_for_.has_value(); }

  /// What `notifications/progress` say; asked for whenever one is due.
  void set_progress(std::function<void(std::function<void(std::string)>)> message) { message_ = std::move(message); }
  void set_total(std::int64_t seconds) { total_ = seconds; }
  /// No form of the answer is longer; one that cannot be shorter becomes an error that says so.
  void set_bound(std::size_t max_bytes) { max_bytes_ = max_bytes; }
  /// What to do when the time is up, if that is not the same call again.
  void set_remedy(std::string remedy) { remedy_ = std::move(remedy); }

  void answer(const rpc::Json& result);
  void fail(const rpc::Error& error);
  void finish(const ToolResult& result);
  void fail(const ToolError& error);
  /// What a refusal of the daemon of `root` means to who called; without one of home's.
  void fail_refused(const rpc::Error& error, std::string root = {});
  /// For what may be missing since nobody trusted the settings of the project at `root`: then it says so.
  void fail_for_trust(const ToolError& error, const std::string& root);
  /// The door ends: a wait stays without an answer.
  void drop_wait();

 private:
  void end();
  void take(const Desk::Answer& answer, const How& how, const std::function<void(const Parts&)>& then);
  void plan_progress(base::Duration from_now);
  void ask_message();
  void tell_progress();
  void look_at_task();
  void take_task(const boost::json::object& record, bool time_is_up);

  struct Wait {
    std::string task;
    TaskWatch::Ticket ticket = 0;
    std::function<void(const boost::json::object&)> then;
    bool is_over = false;
  };

  Services& services_;
  Kind kind_;
  std::shared_ptr<const Client> client_;  // is told of the progress
  Envelope envelope_;
  peer::Reply<> reply_;
  bool over_ = false;
  base::TimePoint begun_;
  base::TimePoint deadline_;
  transport::Loop::Timer deadline_timer_;
  transport::Loop::Timer progress_timer_;
  transport::Loop::Timer message_timer_;
  transport::Loop::Timer wait_timer_;
  std::vector<Desk::Ticket> tickets_;
  std::optional<Wait> waiting_for_;
  std::function<void(std::function<void(std::string)>)> message_;
  std::string last_message_ = "waiting for the daemon";
  std::optional<std::int64_t> total_;
  std::int64_t told_progress_ = 0;
  std::size_t max_bytes_ = usual_max_bytes;
  std::string remedy_ = "the same call again; what was begun goes on";
};

}  // namespace duet::app::mcp
