#include "bridge/session.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "duet/peer/announcement.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"

namespace duet::bridge {
namespace {

constexpr std::size_t most_abandoned = 1000;
constexpr std::uint64_t logged_losses = 5;

Cause cause_of(process::LaunchError::Cause cause) {
  switch (cause) {
    case process::LaunchError::Cause::not_found:
      return Cause::not_found;
    case process::LaunchError::Cause::directory_missing:
      return Cause::cwd_missing;
    case process::LaunchError::Cause::exec_failed:
      break;
  }
  return Cause::exec_failed;
}

std::string in_words(process::ExitStatus status) {
  if (!status.is_known) return "ended";
  return status.signal != 0 ? "was ended by " + process::signal_name(status.signal)
                            : "ended with code " + std::to_string(status.code);
}

std::string seconds_text(base::Duration wait) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(wait).count()) + " s";
}

process::Launch launch_of(const Definition& definition, const std::string& root, process::Environment environment) {
  for (const auto& [name, value] : definition.env) environment[name] = value;
  return {.arguments = definition.command, .environment = std::move(environment), .directory = root};
}

// Calls are bounded by the session itself. Its owner may have all documents waiting next to them, and even then what
// the server writes is read.
peer::Protocol protocol_of(const Definition& definition, const ServerSettings& settings) {
  peer::Protocol protocol = peer::Protocol::lsp_client();
  protocol.max_message = definition.max_body;
  protocol.max_waiting = 10 * settings.most_waiting;
  return protocol;
}

}  // namespace

RequestMark mark_of(std::string_view method, std::string_view params) {
  constexpr RequestMark spread = 0x9E3779B97F4A7C15;
  return std::hash<std::string_view>()(method) * spread ^ std::hash<std::string_view>()(params);
}

Session::Session(transport::Loop& loop, base::Log& log, const Definition& definition, std::string root,
                 const ServerSettings& settings, Events events)
    : loop_(loop),
      log_(log),
      name_(definition.name),
      root_(std::move(root)),
      settings_(settings),
      events_(std::move(events)),
      usual_encoding_(encoding_named(definition.encoding).value_or(Encoding::utf16)),
      started_(loop.now()) {
  process_ = std::make_unique<ServerProcess>(
      loop_, settings_.guard, launch_of(definition, root_, settings_.environment),
      ServerProcess::Events{
          .started = [] {},
          .not_started = [this](process::LaunchError::Cause cause,
                                std::string_view text) { go_down(failure(cause_of(cause), std::string(text))); },
          .ended = [this](process::ExitStatus status) { process_ended(status); },
          .gone = [this] { events_.gone(); }});
  add_answers_to_server(methods_, root_);
  methods_.add("initialize", [this] { kill(Cause::protocol_noise, "sends back what it is sent"); });
  connection_ = std::make_unique<peer::Connection>(loop_, process_->take_channel(), protocol_of(definition, settings_),
                                                   methods_, log_, connection_events());
  connection_->open();
  start_handshake(definition.options);
}

Session::~Session() = default;

peer::ConnectionEvents Session::connection_events() {
  peer::ConnectionEvents events;
  events.on_closed = [this](peer::Ending) { streams_closed(); };
  events.on_unwritable = [this] { streams_closed(); };
  events.on_load_changed = [this] { note_load(); };
  events.conversation.on_notification = [this](std::string_view method, std::string_view params) {
    if (phase_ == Phase::ready || phase_ == Phase::starting) events_.notification(method, params);
  };
  events.conversation.on_lost = [this](const peer::LostMessage& lost) { note_lost(lost); };
  events.conversation.on_late_answer = [this](peer::CallId call) {
    questions_.erase(call);
    watch_silence();
  };
  events.conversation.on_noise = [this] { kill(Cause::protocol_noise, "writes text, but no message of the protocol"); };
  return events;
}

void Session::start_handshake(const std::string& options) {
  const std::string params = initialize_params(root_, settings_.client_version, options);
  ask("initialize", params, base::Duration::max(),
      [this](const CallResult& result) { take_initialize_result(result); });
  set_timer(settings_.patience.initialize, [this] {
    const bool broken = broke_frames_ || connection_->conversation().is_inside_message();
    kill(broken ? Cause::protocol_noise : Cause::handshake_timeout,
         "did not answer initialize within " + seconds_text(settings_.patience.initialize));
  });
}

void Session::take_initialize_result(const CallResult& result) {
  if (phase_ != Phase::starting) return;
  if (result.error) return kill(Cause::refused, "refused initialize: " + result.error->message());
  std::optional<Capabilities> read = read_initialize_result(result.text, usual_encoding_);
  if (!read) return kill(Cause::protocol_noise, "its answer to initialize has no capabilities");
  clear_timer();
  capabilities_ = std::move(*read);
  handshake_time_ = loop_.now() - started_;
  phase_ = Phase::ready;
  notify("initialized", "{}");
  events_.ready();
}

void Session::process_ended(process::ExitStatus status) {
  status_ = status;
  connection_->drain();
  if (phase_ == Phase::starting) {
    go_down(failure(Cause::exited_before_initialize, in_words(status) + " before it answered initialize"));
  } else if (phase_ == Phase::ready) {
    go_down(failure(Cause::crashed, in_words(status)));
  }
  clear_timer();
}

// The process is about to end, if all is well, and its status will say more.
void Session::streams_closed() {
  if (phase_ != Phase::starting && phase_ != Phase::ready) return;
  set_timer(settings_.patience.closing, [this] {
    if (process_->server_has_ended()) return process_->end();  // within a bound of its own, and with the status
    kill(Cause::crashed, "closed its stdin or stdout and did not end");
  });
}

void Session::note_lost(const peer::LostMessage& lost) {
  const base::Level level = ++lost_messages_ <= logged_losses ? base::Level::warn : base::Level::debug;
  noise_ = lost.text;
  log_.write(level, "Language server wrote no proper message",
             {{"server", name_}, {"reason", lost.reason}, {"text", noise_}});
  broke_frames_ = broke_frames_ || !lost.is_printed;
}

std::uint64_t Session::call(std::string_view method, std::string_view params, base::Duration patience,
                            Callback callback) {
  const bool is_too_much = waiting_bytes() + params.size() > settings_.most_waiting;
  if (!failure_ && !is_too_much) {
    const std::uint64_t id = ask(method, params, patience, std::move(callback));
    watch_silence();
    return id;
  }
  const Failure why = failure_ ? *failure_ : failure(Cause::overloaded, "too much waits for it already");
  loop_.defer([callback = std::move(callback), why] { callback({.error = to_error(why)}); });
  return 0;
}

std::uint64_t Session::ask(std::string_view method, std::string_view params, base::Duration patience,
                           Callback callback) {
  const peer::CallId id = connection_->call(method, rpc::Json::view(params), patience,
                                            [this](peer::Outcome outcome) { take_outcome(std::move(outcome)); });
  questions_.emplace(
      id, Question{.callback = std::move(callback), .mark = mark_of(method, params), .losses_before = lost_messages_});
  unread_ = waiting_bytes();
  return id;
}

void Session::notify(std::string_view method, std::string_view params) {
  constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
  peer::Announcement message(method, rpc::Json::view(params));
  connection_->send(message, no_bound);
  unread_ = waiting_bytes();
  watch_silence();
}

void Session::cancel(std::uint64_t id) {
  const auto found = questions_.find(id);
  if (found == questions_.end()) return;
  found->second.callback = nullptr;
  if (connection_->conversation().cancel(id)) {
    questions_.erase(found);
  } else {
    forget_oldest_abandoned();
  }
  watch_silence();
}

void Session::take_outcome(peer::Outcome outcome) {
  const auto found = questions_.find(outcome.call);
  if (found == questions_.end()) return;
  Question& question = found->second;
  question.was_sent = outcome.was_sent;
  switch (outcome.cause) {
    case peer::Outcome::Cause::disconnected:
      return;  // why it went down is told when that is known
    case peer::Outcome::Cause::timed_out:
      outcome.error = to_error(timeout_failure(question));
      if (!outcome.was_sent) break;  // the server owes no answer to what it has not seen
      question.timed_out = true;
      return tell_timeout(question, *outcome.error);
    case peer::Outcome::Cause::unreadable:
      if (phase_ == Phase::starting)
        return kill(Cause::protocol_noise, "its answer to initialize is no proper message");
      outcome.error = to_error(failure(Cause::protocol_noise, "its answer was no proper message"));
      break;
    case peer::Outcome::Cause::overloaded:
      outcome.error = to_error(failure(Cause::overloaded, "too much waits for it already"));
      break;
    case peer::Outcome::Cause::answered:
    case peer::Outcome::Cause::refused:
      break;
  }
  const Callback callback = std::move(question.callback);
  questions_.erase(found);
  watch_silence();
  tell(callback, {.text = std::move(outcome.result), .error = std::move(outcome.error)});
}

void Session::tell_timeout(Question& question, const rpc::Error& error) {
  const Callback callback = std::exchange(question.callback, {});
  forget_oldest_abandoned();
  tell(callback, {.error = error});
}

Failure Session::timeout_failure(const Question& question) const {
  const bool noisy = connection_->conversation().is_inside_message() || question.losses_before != lost_messages_;
  return noisy ? failure(Cause::protocol_noise, "did not answer in time, and wrote what is no message")
               : failure(Cause::timeout, "did not answer in time");
}

void Session::tell(const Callback& callback, CallResult result) {
  if (!callback) return;
  try {
    callback(std::move(result));
  } catch (const std::exception& fault) {
    log_.error("Callback failed", {{"server", name_}, {"what", fault.what()}});
  }
}

void Session::forget_oldest_abandoned() {
  const auto abandoned = [](const Questions::value_type& each) { return !each.second.callback; };
  if (static_cast<std::size_t>(std::ranges::count_if(questions_, abandoned)) <= most_abandoned) return;
  questions_.erase(std::ranges::find_if(questions_, abandoned));
}

std::size_t Session::pending() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(questions_, [](const Questions::value_type& each) { return bool(each.second.callback); }));
}

// A server may well leave a cancelled call unanswered; one that timed out it still owes.
bool Session::is_owed_answer() const {
  return std::ranges::any_of(
      questions_, [](const Questions::value_type& each) { return each.second.callback || each.second.timed_out; });
}

void Session::note_load() {
  const std::size_t before = std::exchange(unread_, waiting_bytes());
  watch_silence();
  if (unread_ >= before) return;
  read_at_ = loop_.now();
  if (phase_ == Phase::ready) events_.read();
}

void Session::watch_silence() {
  if (phase_ != Phase::ready) return;
  const base::TimePoint now = loop_.now();
  const base::TimePoint heard_at = connection_->conversation().heard_at();
  answering_.note_work(is_owed_answer(), now, heard_at);
  reading_.note_work(waiting_bytes() > 0, now, std::max(heard_at, read_at_));
  const bool has_work = answering_.is_running() || reading_.is_running();
  if (has_work && !silence_timer_) silence_timer_ = loop_.after(silence_left(), [this] { look_for_silence(); });
}

// Until it is over, as things are. What a server says is a sign of life also while it does not read.
base::Duration Session::silence_left() const {
  const base::TimePoint now = loop_.now();
  const base::TimePoint heard_at = connection_->conversation().heard_at();
  base::Duration longest = base::Duration::zero();
  if (answering_.is_running()) longest = answering_.silence(now, heard_at);
  if (reading_.is_running()) longest = std::max(longest, reading_.silence(now, std::max(heard_at, read_at_)));
  return settings_.patience.silence - longest;
}

void Session::look_for_silence() {
  silence_timer_.reset();
  if (!answering_.is_running() && !reading_.is_running()) return;
  if (silence_left() > base::Duration::zero()) return watch_silence();
  const std::string silent = "wrote nothing for " + seconds_text(settings_.patience.silence);
  kill(Cause::crashed, silent + (reading_.is_running() ? " and does not read its stdin" : " with calls unanswered"));
}

void Session::stop() {
  if (phase_ == Phase::starting) kill(Cause::stopped, "was stopped");
  if (phase_ != Phase::ready) return;
  phase_ = Phase::stopping;
  silence_timer_.reset();
  fail_calls(failure(Cause::stopped, "was stopped"));
  ask("shutdown", {}, base::Duration::max(), [this](const CallResult&) {
    notify("exit", {});
    set_timer(settings_.patience.exit, [this] { process_->end(); });
  });
  set_timer(settings_.patience.shutdown, [this] { process_->end(); });
}

void Session::kill(Cause cause, std::string message) {
  if (phase_ == Phase::down) return;
  go_down(failure(cause, std::move(message)));
  process_->end();
}

Failure Session::failure(Cause cause, std::string message) const {
  Failure why{.cause = cause,
              .message = name_ + ": " + std::move(message),
              .server = name_,
              .status = status_,
              .error_output = process_->error_output(),
              .noise = noise_};
  return why;
}

void Session::go_down(const Failure& why) {
  if (phase_ == Phase::down) return;
  phase_ = Phase::down;
  failure_ = why;
  clear_timer();
  silence_timer_.reset();
  connection_->close();  // from here on every question says whether the server has seen it
  for (const auto& [id, question] : questions_) {
    if (question.was_sent) in_flight_.push_back(question.mark);
  }
  events_.down(why);
  fail_calls(why);
}

void Session::fail_calls(const Failure& why) {
  const Questions questions = std::exchange(questions_, {});
  for (const auto& [id, question] : questions) {
    connection_->conversation().cancel(id);
    tell(question.callback, {.error = to_error(why)});
  }
}

void Session::set_timer(base::Duration wait, std::function<void()> task) {
  clear_timer();
  timer_ = loop_.after(wait, [this, task = std::move(task)] {
    timer_.reset();
    task();
  });
}

void Session::clear_timer() { timer_.reset(); }

}  // namespace duet::bridge
