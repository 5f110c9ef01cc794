#include "app/mcp/call.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/refusals.h"
#include "app/mcp/status_answer.h"
#include "app/mcp/task_answers.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;
using std::chrono::seconds;

constexpr seconds first_progress{1};
constexpr seconds between_progress{3};
constexpr std::chrono::milliseconds until_message{300};  // that a question for the message may take
constexpr seconds to_tell_the_end{3};                    // that is left for the answer after a wait

}  // namespace

Call::Call(Services& services, Kind kind, std::shared_ptr<const Client> client, Envelope envelope, peer::Reply<> reply)
    : services_(services),
      kind_(kind),
      client_(std::move(client)),
      envelope_(std::move(envelope)),
      reply_(std::move(reply)) {
  envelope_.params = {};  // they are read, and may be long
  services_.calls.push_back(this);
}

Call::~Call() { std::erase(services_.calls, this); }

// It lives until it is answered: what it waits for holds it.
void Call::begin(bool unlimited) {
  begun_ = services_.loop.now();
  deadline_ = unlimited ? base::TimePoint::max() : begun_ + longest;
  reply_.on_abandoned([self = weak_from_this()] {
    if (const auto call = self.lock()) call->end();  // which is held until then
  });
  if (!unlimited) {
    deadline_timer_ = services_.loop.at(deadline_, [self = shared_from_this()] {
      self->fail(ToolError{.code = "timeout",
                           .problem = "it takes longer than " + std::to_string(longest.count()) + " s",
                           .remedy = self->remedy_});
    });
  }
  if (!envelope_.progress_token.empty() && client_->notify) plan_progress(first_progress);
}

void Call::guard(const std::function<void()>& step) {
  const ToolError defect{.code = "internal", .problem = "the call failed here", .remedy = "project_status"};
  try {
    step();
  } catch (const std::exception& fault) {
    services_.log.error("Call failed", {{"what", fault.what()}});
    fail(defect);
  } catch (...) {
    services_.log.error("Call failed");
    fail(defect);
  }
}

std::string Call::home() {
  const tl::expected<std::string, ToolError>& home = services_.scope.home();
  if (home) return *home;
  fail(home.error());
  return {};
}

void Call::ask(const std::string& root, std::vector<Desk::Part> parts, How how,
               std::function<void(const Parts&)> then) {
  if (over_) return;
  const auto ticket = std::make_shared<Desk::Ticket>(0);
  *ticket =
      services_.desk.ask({.root = root,
                          .parts = std::move(parts),
                          .deadline = std::min(deadline_, services_.loop.now() + how.patience),
                          .is_about_code = how.is_about_code,
                          .may_start = how.may_start},
                         [self = shared_from_this(), ticket, how, then = std::move(then)](const Desk::Answer& answer) {
                           std::erase(self->tickets_, *ticket);
                           self->guard([&] { self->take(answer, how, then); });
                         });
  tickets_.push_back(*ticket);
}

void Call::take(const Desk::Answer& answer, const How& how, const std::function<void(const Parts&)>& then) {
  if (over_) return;
  if (!answer) return how.on_failure ? how.on_failure(answer.error()) : fail(answer.error());
  const auto refused = std::ranges::find_if(*answer, [](const auto& part) { return !part; });
  if (refused != answer->end() && !how.keeps_refusals) return fail_refused(refused->error());
  then(*answer);
}

void Call::ask(const std::string& root, std::string method, object params, How how,
               std::function<void(const value&)> then) {
  ask(root, {{std::move(method), std::move(params)}}, std::move(how),
      [then = std::move(then)](const Parts& parts) { then(*parts.front()); });
}

void Call::wait_for_end(const std::string& task, std::optional<seconds> patience,
                        std::function<void(const object&)> then) {
  if (over_) return;
  waiting_for_ = Wait{.task = task, .then = std::move(then)};
  if (services_.is_ending) return drop_wait();
  if (patience) {
    const base::TimePoint until = std::min(services_.loop.now() + *patience, deadline_ - to_tell_the_end);
    wait_timer_ = services_.loop.at(until, [self = shared_from_this()] {
      if (self->waiting_for_) self->waiting_for_->is_over = true;
      self->look_at_task();
    });
  }
  const TaskWatch::Ticket ticket = services_.tasks.wait(task, [self = shared_from_this()](const ToolError* failure) {
    if (failure != nullptr) return self->fail(*failure);
    self->look_at_task();
  });
  if (waiting_for_) {
    waiting_for_->ticket = ticket;
  } else {
    services_.tasks.forget(ticket);
  }
}

void Call::look_at_task() {
  if (!waiting_for_ || over_) return;
  ask(*services_.scope.home(), "task.get", {{"taskId", waiting_for_->task}}, {}, [this](const value& record) {
    if (waiting_for_) take_task(record.as_object(), waiting_for_->is_over);
  });
}

void Call::take_task(const object& record, bool time_is_up) {
  if (!has_ended(record) && !time_is_up) return;
  const Wait wait = std::move(*waiting_for_);
  waiting_for_.reset();
  wait_timer_.cancel();
  const auto self = shared_from_this();
  services_.tasks.forget(wait.ticket);
  wait.then(record);
}

void Call::plan_progress(base::Duration from_now) {
  progress_timer_ = services_.loop.after(from_now, [self = shared_from_this()] {
    if (self->over_) return;
    self->plan_progress(between_progress);
    self->ask_message();
  });
}

// A daemon that is slow to say what is awaited does not hold up the progress.
void Call::ask_message() {
  if (!message_) return tell_progress();
  message_timer_ = services_.loop.after(until_message, [self = shared_from_this()] { self->tell_progress(); });
  message_([self = shared_from_this()](std::string message) {
    self->last_message_ = std::move(message);
    if (self->message_timer_) self->tell_progress();
  });
}

void Call::tell_progress() {
  message_timer_.cancel();
  if (over_) return;
  const auto passed = std::chrono::duration_cast<seconds>(services_.loop.now() - begun_).count();
  if (passed <= told_progress_) return;
  told_progress_ = passed;
  object params{{"progress", passed}};
  if (total_) params["total"] = *total_;
  params["message"] = last_message_;
  client_->tell("notifications/progress", progress_text(envelope_, params));
}

void Call::end() {
  if (std::exchange(over_, true)) return;
  deadline_timer_.cancel();
  progress_timer_.cancel();
  message_timer_.cancel();
  wait_timer_.cancel();
  for (const Desk::Ticket ticket : std::exchange(tickets_, {})) services_.desk.cancel(ticket);
  if (waiting_for_) services_.tasks.forget(waiting_for_->ticket);
  waiting_for_.reset();
  message_ = {};
}

// What it waits for holds it, and end() lets that go.
void Call::answer(const rpc::Json& result) {
  if (over_) return;
  const auto self = shared_from_this();
  end();
  reply_.ok(result);
}

void Call::fail(const rpc::Error& error) {
  if (over_) return;
  const auto self = shared_from_this();
  end();
  reply_.fail(error);
}

void Call::finish(const ToolResult& result) {
  answer(result_text(envelope_, kind_ == Kind::tool ? result.members(max_bytes_) : result.members()));
}

void Call::fail(const ToolError& error) {
  const ToolResult result = ToolResult::of(error, max_bytes_);
  if (kind_ == Kind::tool) return finish(result);
  fail(rpc::Error(rpc::code::internal_error, "Internal error: " + result.text));
}

void Call::fail_refused(const rpc::Error& error, std::string root) {
  if (root.empty()) root = services_.scope.home().value_or("");
  const ToolError told = tool_error_of(error, root);
  const bool may_be_set = told.code == "no-server" || told.code == "agent-not-offered";
  may_be_set&& kind_ == Kind::tool ? fail_for_trust(told, root) : fail(told);
}

void Call::fail_for_trust(const ToolError& error, const std::string& root) {
  const How how{.keeps_refusals = true, .on_failure = [this, error](const ToolError&) { fail(error); }};
  ask(root, {{"daemon.status", {}}}, how, [this, error, root](const Parts& parts) {
    ToolError told = error;
    if (parts[0] && is_untrusted(*parts[0])) {
      told.remedy += "; the settings of " + root +
                     " do not count until the user, a person, has looked at them and runs 'duet-rpc trust' there";
    }
    fail(told);
  });
}

void Call::drop_wait() {
  if (!is_waiting() || over_) return;
  const auto self = shared_from_this();
  end();
  reply_.withdraw();
}

}  // namespace duet::app::mcp
