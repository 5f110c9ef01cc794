#include "app/mcp/desk.h"

#include <algorithm>
#include <utility>

#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using Cause = peer::Outcome::Cause;

Desk::Answer failed(ToolError error) { return tl::unexpected(std::move(error)); }

ToolError timed_out(const std::string& method) {
  return {.code = "timeout",
          .problem = "the daemon did not answer " + method + " in time",
          .remedy = "the same call again; what was begun goes on"};
}

}  // namespace

Desk::Desk(transport::Loop& loop, base::Log& log, DaemonLink::Rules rules)
    : loop_(loop), log_(log), rules_(rules), silent_(nullptr, base::Level::error) {}

Desk::~Desk() {
  jobs_.clear();  // their callbacks are not called any more
  for (Line& line : lines_) line.is_gone = true;
}

DaemonLink& Desk::link(const std::string& root) {
  std::unique_ptr<DaemonLink>& link = links_[root];
  if (!link) link = std::make_unique<DaemonLink>(loop_, log_, root, rules_);
  return *link;
}

Desk::Ticket Desk::ask(Question question, Answered answered) {
  const Ticket ticket = ++last_;
  Job& job = jobs_[ticket] = {.ticket = ticket, .question = std::move(question), .answered = std::move(answered)};
  may_begin(job) ? admit(job) : waiting_.push_back(ticket);
  sweep_later();
  return ticket;
}

bool Desk::may_begin(const Job& job) const {
  return at_once_ < most_at_once && (!job.question.is_about_code || about_code_ < most_about_code);
}

void Desk::admit(const Job& job) {
  ++at_once_;
  about_code_ += job.question.is_about_code ? 1 : 0;
  starting_.push_back(job.ticket);
}

// Its place goes at once to the first that may have it, so that nobody who comes later gets it.
void Desk::leave(const Job& job) {
  --at_once_;
  about_code_ -= job.question.is_about_code ? 1 : 0;
  const auto next = std::ranges::find_if(waiting_, [this](Ticket ticket) { return may_begin(jobs_.at(ticket)); });
  if (next != waiting_.end()) {
    admit(jobs_.at(*next));
    waiting_.erase(next);
  }
  sweep_later();
}

void Desk::connect(Job& job) {
  DaemonLink& daemon = link(job.question.root);
  if (Line* const line = idle_line(daemon)) return send(job, *line);
  const Ticket ticket = job.ticket;
  if (!job.question.may_start) {
    DaemonLink::Channel channel = daemon.try_connect();
    if (channel) return send(job, open_line(daemon, std::move(channel)));
    return finish(ticket, failed({.code = "no-daemon", .problem = "no daemon runs", .remedy = "task_run starts one"}));
  }
  daemon.connect([this, ticket, &daemon](tl::expected<DaemonLink::Channel, ToolError> channel) {
    const auto found = jobs_.find(ticket);
    if (found == jobs_.end()) return;  // cancelled meanwhile
    if (!channel) return finish(ticket, failed(channel.error()));
    send(found->second, open_line(daemon, std::move(*channel)));
  });
}

Desk::Line* Desk::idle_line(const DaemonLink& link) {
  const auto found = std::ranges::find_if(lines_, [&](const Line& line) {
    return line.link == &link && line.job == 0 && !line.is_gone && !line.is_settling;
  });
  return found != lines_.end() ? &*found : nullptr;
}

// A new connection hears of every event; this one wants to know only of the daemon's end.
Desk::Line& Desk::open_line(DaemonLink& link, DaemonLink::Channel channel) {
  if (lines_.size() >= most_at_once) close_idle_line();
  Line& line = lines_.emplace_back();
  line.link = &link;
  peer::ConnectionEvents events;
  events.on_closed = [this, &line](peer::Ending) {
    line.is_gone = true;
    sweep_later();
  };
  events.conversation.on_notification = [&link](std::string_view method, std::string_view params) {
    if (method == "event.daemonStopping") link.note_stopping(rpc::parse_value(params).as_object());
  };
  line.connection = std::make_unique<peer::Connection>(loop_, std::move(channel), peer::Protocol::json_lines_client(),
                                                       no_methods_, silent_, std::move(events));
  line.connection->open();
  const boost::json::object wish{{"kinds", boost::json::array{"daemonStopping"}}};
  line.connection->call(
      "events.subscribe", rpc::Json(wish), base::Duration::max(),
      [&line](const peer::Outcome& outcome) { line.has_answered = outcome.cause == Cause::answered; });
  return line;
}

// One that settles is given time, unless there are many.
void Desk::close_idle_line() {
  const bool is_crowded = lines_.size() >= 2 * most_at_once;
  const auto idle = std::ranges::find_if(lines_, [is_crowded](const Line& line) {
    return line.job == 0 && !line.is_gone && (is_crowded || !line.is_settling);
  });
  if (idle != lines_.end()) idle->connection->close();
}

void Desk::send(Job& job, Line& line) {
  const Ticket ticket = job.ticket;
  const int attempt = job.attempt;
  line.job = ticket;
  job.line = &line;
  job.calls.clear();
  job.answers.clear();
  const base::Duration patience = std::max(job.question.deadline - loop_.now(), base::Duration(0));
  for (const Part& part : job.question.parts) {
    const auto taken = [this, ticket, attempt](peer::Outcome outcome) { take(ticket, attempt, std::move(outcome)); };
    job.calls.push_back(line.connection->call(part.method, rpc::Json(part.params), patience, taken));
  }
}

void Desk::take(Ticket ticket, int attempt, peer::Outcome outcome) {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end() || found->second.attempt != attempt) return;
  Job& job = found->second;
  switch (outcome.cause) {
    case Cause::answered:
      job.answers.emplace_back(rpc::parse_value(outcome.result));
      break;
    case Cause::refused:
      job.answers.emplace_back(tl::unexpected(*outcome.error));
      break;
    case Cause::timed_out:
      return finish(ticket, failed(timed_out(job.question.parts[job.answers.size()].method)));
    case Cause::disconnected:
      return take_lost(job);
    default:
      return finish(ticket, failed({.code = "internal",
                                    .problem = "the daemon's answer could not be read",
                                    .remedy = "a smaller question"}));
  }
  if (job.answers.size() < job.question.parts.size()) return;
  finish(ticket, std::move(job.answers));
}

// Its other parts are lost with it, and so are the other connections to that daemon, though they may not know it yet.
// One that dies takes connections to its end, and answers none: such a one has not got the question.
void Desk::take_lost(Job& job) {
  constexpr int most_attempts = 10;
  constexpr std::chrono::milliseconds until_it_is_gone{50};
  forget_lines(*job.line->link);
  job.line->job = 0;
  job.lost += job.line->has_answered ? 1 : 0;
  job.line = nullptr;
  const bool may_go_on = job.lost < 2 && ++job.attempt < most_attempts && loop_.now() < job.question.deadline;
  if (may_go_on) {
    job.again = loop_.after(until_it_is_gone, [this, ticket = job.ticket] { connect(jobs_.at(ticket)); });
    return;
  }
  finish(job.ticket,
         failed({.code = "no-daemon",
                 .problem = "the daemon of " + job.question.root + " ended during the call, and so did the next",
                 .remedy = "ask the user to look at 'duet-rpc daemon status'"}));
}

void Desk::forget_lines(const DaemonLink& link) {
  for (Line& line : lines_) line.is_gone = line.is_gone || line.link == &link;
}

void Desk::finish(Ticket ticket, Answer answer) {
  const auto found = jobs_.find(ticket);
  Job job = std::move(found->second);
  jobs_.erase(found);
  if (job.line != nullptr) job.line->job = 0;
  if (!answer) cancel_rest(job);
  leave(job);
  job.answered(std::move(answer));
}

// The daemon answers in order: before it has answered what was cancelled, the connection would delay others.
void Desk::cancel_rest(const Job& job) {
  if (job.line == nullptr || job.line->is_gone || job.answers.size() >= job.calls.size()) return;
  Line& line = *job.line;
  for (std::size_t part = job.answers.size(); part < job.calls.size(); ++part) {
    line.connection->conversation().cancel(job.calls[part]);
  }
  line.is_settling = true;
  line.connection->call("version", rpc::Json::view("{}"), base::Duration::max(),
                        [&line](const peer::Outcome&) { line.is_settling = false; });
}

void Desk::cancel(Ticket ticket) {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end()) return;
  const Job job = std::move(found->second);
  jobs_.erase(found);
  if (std::erase(waiting_, ticket) > 0) return;
  std::erase(starting_, ticket);
  if (job.line != nullptr) job.line->job = 0;
  cancel_rest(job);
  leave(job);
}

void Desk::sweep_later() {
  if (!sweeping_) sweeping_ = loop_.deferred([this] { sweep(); });
}

void Desk::sweep() {
  lines_.remove_if([](const Line& line) { return line.is_gone && line.job == 0; });
  for (const Ticket ticket : std::exchange(starting_, {})) {
    const auto found = jobs_.find(ticket);  // an answer to another may have cancelled it
    if (found != jobs_.end()) connect(found->second);
  }
}

}  // namespace duet::app::mcp
