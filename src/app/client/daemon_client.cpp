#include "app/client/daemon_client.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "app/client/refusal_text.h"
#include "app/log/trace.h"
#include "app/view/display_text.h"
#include "duet/base/log_sink.h"
#include "duet/framing/frame.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

constexpr std::size_t most_params = framing::max_body - 1024;  // the rest is for the method and the id

std::unique_ptr<base::LogSink> trace_sink(const CommandLine& line) {
  const bool wanted = line.flag("trace") || trace_wanted(std::getenv("AIWG_IPC_DEBUG"));
  return wanted ? base::stderr_sink(false) : nullptr;
}

}  // namespace

DaemonClient::DaemonClient(const CommandLine& line, std::chrono::milliseconds patience)
    : given_patience_(line.duration("timeout")),
      default_patience_(patience),
      program_(line.program),
      trace_log_(trace_sink(line)) {
  if (const std::optional<FarPlace> place = far_place(line)) {
    far_.emplace(*place, program_);
  } else {
    here_.emplace(line);
  }
}

std::chrono::milliseconds DaemonClient::patience() const { return given_patience_.value_or(default_patience_); }

base::Duration DaemonClient::long_patience() const {
  return given_patience_ ? base::Duration(*given_patience_) : base::Duration::max();
}

const Project* DaemonClient::project() const { return here_ && here_->project() ? &*here_->project() : nullptr; }

const StateFolder* DaemonClient::folder() const { return here_ && here_->folder() ? &*here_->folder() : nullptr; }

void DaemonClient::connect(base::Duration most) {
  if (!client_.is_connected()) client_.connect(open_channel(most));
}

std::unique_ptr<transport::Channel> DaemonClient::open_channel(base::Duration most) {
  check_refusal();
  const auto within = std::min(std::chrono::ceil<std::chrono::milliseconds>(most), patience());
  std::unique_ptr<transport::Channel> channel = endpoint().connect(client_.loop(), within);
  tell_notes();
  return shown(std::move(channel));
}

bool DaemonClient::try_connect() {
  if (client_.is_connected()) return true;
  check_refusal();
  std::unique_ptr<transport::Channel> channel = endpoint().try_connect(client_.loop());
  if (channel) client_.connect(shown(std::move(channel)));
  return client_.is_connected();
}

void DaemonClient::check_refusal() const {
  if (const std::optional<Failure> refusal = endpoint().refusal()) throw *refusal;
}

std::string DaemonClient::lost_text() const {
  return far_ ? "the connection to " + place() + " is lost; trying again"
              : "the daemon is gone; waiting for the next one";
}

std::unique_ptr<transport::Channel> DaemonClient::shown(std::unique_ptr<transport::Channel> channel) {
  if (!trace_log_.enabled(base::Level::trace)) return channel;
  return traced(std::move(channel), trace_log_, 0);
}

void DaemonClient::tell_notes() const {
  if (!here_) return;
  if (const std::string note = here_->note_of_version(); !note.empty()) tell_user(note);
  const std::string note = tells_settings_ ? here_->note_of_settings() : std::string();
  if (!note.empty()) tell_user(note);
}

void DaemonClient::tell_user(const std::string& note) const {
  const std::string line = program_ + ": " + harmless_lines(note) + '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

peer::Outcome DaemonClient::ask(std::string_view method, std::string_view params, base::Duration patience) {
  // The daemon would refuse it without knowing whose it is, so we would wait in vain.
  if (params.size() > most_params) {
    throw Failure(std::string(method) + ": " + std::to_string(params.size()) +
                  " bytes of parameters are too much; a message may have 10 MiB");
  }
  const base::TimePoint begun = client_.loop().now();
  connect();
  if (patience != base::Duration::max()) {
    patience = std::max(patience - (client_.loop().now() - begun), base::Duration::zero());
  }
  peer::Outcome outcome = client_.call_raw(method, rpc::Json::view(params), patience);
  if (outcome.cause == peer::Outcome::Cause::disconnected) check_refusal();
  return outcome;
}

std::string DaemonClient::call_raw(std::string_view method, std::string_view params) {
  peer::Outcome outcome = ask(method, params, patience());
  if (outcome.cause != peer::Outcome::Cause::answered) throw failure_of(method, outcome);
  return std::move(outcome.result);
}

std::string DaemonClient::wait_raw(std::string_view method, std::string_view params) {
  peer::Outcome outcome = ask(method, params, long_patience());
  if (outcome.cause != peer::Outcome::Cause::answered) throw failure_of(method, outcome);
  return std::move(outcome.result);
}

boost::json::value DaemonClient::call(std::string_view method, const boost::json::value& params) {
  return rpc::parse_value(call_raw(method, params.is_null() ? std::string() : rpc::to_text(params)));
}

Failure DaemonClient::failure_of(std::string_view method, const peer::Outcome& outcome) {
  using Cause = peer::Outcome::Cause;
  const std::string name(method);
  switch (outcome.cause) {
    case Cause::timed_out:
      return Failure("the daemon did not answer " + name + " in time; --timeout gives it more", exit_code::no_answer);
    case Cause::refused:
      break;
    default:
      return Failure("the daemon went away before it answered " + name, exit_code::no_daemon);
  }
  return Failure(refusal_text(method, *outcome.error));
}

}  // namespace duet::app
