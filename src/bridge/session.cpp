#include "bridge/session.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"

namespace duet::bridge {
namespace {

constexpr std::size_t most_abandoned = 1000;
constexpr std::uint64_t logged_losses = 5;

std::uint64_t read_id(std::string_view id) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  return error == std::errc{} && end == id.data() + id.size() ? number : 0;
}

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
  stream_ = std::make_unique<ServerStream>(
      loop_, process_->take_channel(), definition.max_body,
      ServerStream::Events{
          .on_message = [this](const rpc::Message& message, std::string_view) { take(message); },
          .on_lost = [this](const LostMessage& lost) { take_lost(lost); },
          .on_flood = [this] { kill(Cause::protocol_noise, "writes text, but no message of the protocol"); },
          .on_closed = [this] { streams_closed(); }});
  start_handshake(definition.options);
}

Session::~Session() = default;

void Session::start_handshake(const std::string& options) {
  const std::string params = initialize_params(root_, settings_.client_version, options);
  send_call("initialize", params, base::Duration::max(),
            [this](const CallResult& result) { take_initialize_result(result); });
  set_timer(settings_.patience.initialize, [this] {
    const bool broken = broke_frames_ || stream_->inside_message();
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
  stream_->drain();
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
  set_timer(settings_.patience.closing, [this] { kill(Cause::crashed, "closed its stdin or stdout and did not end"); });
}

void Session::take(const rpc::Message& message) {
  switch (message.kind) {
    case rpc::Message::Kind::response:
      return take_response(message);
    case rpc::Message::Kind::request:
      return take_request(message);
    case rpc::Message::Kind::notification:
      if (phase_ == Phase::ready || phase_ == Phase::starting) events_.notification(message.method, message.params);
      return;
    case rpc::Message::Kind::batch:
    case rpc::Message::Kind::invalid:
      return take_improper(message);
  }
}

// A request gets an answer all the same, or the server might wait for ever.
void Session::take_improper(const rpc::Message& message) {
  log_.warn("Language server sent no proper message", {{"server", name_}, {"what", message.refusal->message()}});
  ++lost_messages_;
  if (!message.id_is_known) return;
  if (message.method.empty()) return lose_answer(calls_.find(read_id(message.id)));
  stream_->send(rpc::encode_error(message.id, rpc::encode(*message.refusal)));
}

void Session::take_request(const rpc::Message& message) {
  if (message.method == "initialize") return kill(Cause::protocol_noise, "sends back what it is sent");
  if (stream_->waiting_bytes() > 2 * settings_.most_waiting) return kill(Cause::crashed, "does not read its stdin");
  const std::optional<std::string> answer = answer_to_server(message.method, message.params, root_);
  if (answer) {
    stream_->send(rpc::encode_result(message.id, *answer));
  } else {
    stream_->send(rpc::encode_error(message.id, rpc::encode(rpc::method_not_found())));
  }
}

void Session::take_response(const rpc::Message& message) {
  const auto found = calls_.find(read_id(message.id));
  if (found == calls_.end()) {
    log_.debug("Answer nobody waits for", {{"server", name_}, {"id", base::JsonText{message.id}}});
    return;
  }
  // Some servers send both members and leave the other one null.
  const bool refused = !message.error.empty() && !(message.error == "null" && !message.result.empty());
  if (refused) {
    settle(found, {.error = rpc::decode_error(message.error)});
  } else {
    settle(found, {.text = std::string(message.result)});
  }
}

// Of a lost answer the id is known, or there is only one call that it can have been for; or else that call fails when
// its time is up.
void Session::take_lost(const LostMessage& lost) {
  const base::Level level = ++lost_messages_ <= logged_losses ? base::Level::warn : base::Level::debug;
  log_.write(level, "Language server wrote no proper message",
             {{"server", name_}, {"reason", lost.reason}, {"text", stream_->noise()}});
  broke_frames_ = broke_frames_ || !lost.is_printed;
  if (!lost.may_be_answer) return;
  auto hit = calls_.find(read_id(lost.id));
  if (lost.id.empty() && pending() == 1) {
    hit = std::ranges::find_if(calls_, [](const Calls::value_type& call) { return bool(call.second.callback); });
  }
  lose_answer(hit);
}

void Session::lose_answer(Calls::iterator call) {
  if (call == calls_.end() || stream_->is_waiting(call->first)) return;
  if (phase_ == Phase::starting) return kill(Cause::protocol_noise, "its answer to initialize is no proper message");
  settle(call, {.error = to_error(failure(Cause::protocol_noise, "its answer was no proper message"))});
}

std::uint64_t Session::call(std::string_view method, std::string_view params, base::Duration patience,
                            Callback callback) {
  if (stream_->waiting_bytes() + params.size() <= settings_.most_waiting) {
    watch_silence();
    return send_call(method, params, patience, std::move(callback));
  }
  loop_.defer([callback = std::move(callback), why = failure(Cause::overloaded, "too much waits for it already")] {
    callback({.error = to_error(why)});
  });
  return 0;
}

std::uint64_t Session::send_call(std::string_view method, std::string_view params, base::Duration patience,
                                 Callback callback) {
  const std::uint64_t id = ++last_call_;
  calls_.emplace(id, Pending{.callback = std::move(callback),
                             .timer = loop_.after(patience, [this, id] { call_timed_out(id); }),
                             .mark = mark_of(method, params),
                             .asked_at = loop_.now(),
                             .losses_before = lost_messages_});
  stream_->send(rpc::encode_request(std::to_string(id), rpc::quoted(method), params), id);
  return id;
}

void Session::notify(std::string_view method, std::string_view params) {
  stream_->send(rpc::encode_notification(rpc::quoted(method), params));
}

void Session::cancel(std::uint64_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  found->second.timer.reset();
  found->second.callback = nullptr;
  if (stream_->withdraw(id)) {
    calls_.erase(found);
    return;
  }
  notify("$/cancelRequest", R"({"id":)" + std::to_string(id) + '}');
  forget_oldest_abandoned();
}

void Session::call_timed_out(std::uint64_t id) {
  Pending& pending = calls_.at(id);
  pending.timer.reset();
  pending.timed_out = true;
  const Callback callback = std::move(pending.callback);
  const bool noisy = stream_->inside_message() || pending.losses_before != lost_messages_;
  cancel(id);
  Failure why = noisy ? failure(Cause::protocol_noise, "did not answer in time, and wrote what is no message")
                      : failure(Cause::timeout, "did not answer in time");
  tell(callback, {.error = to_error(why)});
}

void Session::settle(Calls::iterator call, CallResult result) {
  Pending pending = std::move(call->second);
  calls_.erase(call);
  pending.timer.reset();
  tell(pending.callback, std::move(result));
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
  const auto abandoned = [](const Calls::value_type& call) { return !call.second.callback; };
  if (static_cast<std::size_t>(std::ranges::count_if(calls_, abandoned)) <= most_abandoned) return;
  calls_.erase(std::ranges::find_if(calls_, abandoned));
}

std::size_t Session::pending() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(calls_, [](const Calls::value_type& call) { return bool(call.second.callback); }));
}

void Session::watch_silence() {
  if (!silence_timer_) silence_timer_ = loop_.after(settings_.patience.silence, [this] { look_for_silence(); });
}

// A server may well leave a cancelled call unanswered; one that timed out it still owes.
void Session::look_for_silence() {
  silence_timer_.reset();
  const auto owed = std::ranges::find_if(
      calls_, [](const Calls::value_type& call) { return call.second.callback || call.second.timed_out; });
  if (owed == calls_.end()) return;
  const base::TimePoint end = std::max(owed->second.asked_at, stream_->heard_at()) + settings_.patience.silence;
  if (loop_.now() < end) {
    silence_timer_ = loop_.at(end, [this] { look_for_silence(); });
    return;
  }
  kill(Cause::crashed, "wrote nothing for " + seconds_text(settings_.patience.silence) + " with calls unanswered");
}

void Session::stop() {
  if (phase_ == Phase::starting) kill(Cause::stopped, "was stopped");
  if (phase_ != Phase::ready) return;
  phase_ = Phase::stopping;
  fail_calls(failure(Cause::stopped, "was stopped"));
  send_call("shutdown", {}, base::Duration::max(), [this](const CallResult&) {
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
              .noise = stream_ ? stream_->noise() : std::string()};
  return why;
}

void Session::go_down(const Failure& why) {
  if (phase_ == Phase::down) return;
  phase_ = Phase::down;
  clear_timer();
  silence_timer_.reset();
  for (const auto& [id, call] : calls_) {
    if (!stream_->is_waiting(id)) in_flight_.push_back(call.mark);
  }
  events_.down(why);
  fail_calls(why);
}

void Session::fail_calls(const Failure& why) {
  Calls calls = std::exchange(calls_, {});
  for (auto& [id, call] : calls) {
    call.timer.reset();
    stream_->withdraw(id);
    tell(call.callback, {.error = to_error(why)});
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
