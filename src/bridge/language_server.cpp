#include "bridge/language_server.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/rpc/json_text.h"
#include "process/launch.h"
#include "process/process_tree.h"

namespace duet::bridge {
namespace {

constexpr std::chrono::seconds between_memory_looks{5};
constexpr unsigned life_shift = 40;

Failure launch_failure(const Definition& definition, const process::LaunchError& error) {
  const bool no_folder = error.cause() == process::LaunchError::Cause::directory_missing;
  return {.cause = no_folder ? Cause::cwd_missing : Cause::exec_failed,
          .message = definition.name + ": " + error.what(),
          .server = definition.name};
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

}  // namespace

std::string_view name_of(LanguageServer::State state) {
  switch (state) {
    case LanguageServer::State::stopped:
      return "stopped";
    case LanguageServer::State::starting:
      return "starting";
    case LanguageServer::State::ready:
      return "ready";
    case LanguageServer::State::stopping:
      return "stopping";
    case LanguageServer::State::restarting:
      return "restarting";
  }
  return "stopped";
}

LanguageServer::LanguageServer(transport::Loop& loop, base::Log& log, Definition definition, std::string root,
                               const ServerSettings& settings)
    : loop_(loop),
      log_(log),
      definition_(std::move(definition)),
      root_(std::move(root)),
      settings_(settings),
      crashes_(settings.patience.restart),
      next_start_(loop.now()),
      documents_([this](std::string_view method, const std::string& params) { session_->notify(method, params); }),
      diagnostics_(documents_) {}

LanguageServer::~LanguageServer() {
  for (auto* timer : {&restart_timer_, &idle_timer_, &memory_timer_}) clear(*timer);
}

void LanguageServer::use(Use use) {
  last_use_ = loop_.now();
  if (state_ == State::ready) return use(nullptr);
  if (users_.size() >= most_users) {
    const Failure why{
        .cause = Cause::overloaded, .message = name() + ": too many wait for it to start", .server = name()};
    return use(&why);
  }
  const bool is_down = state_ == State::stopped || state_ == State::stopping;
  if (is_down && failure_ && loop_.now() < next_start_) return use(&*failure_);
  users_.push_back(std::move(use));
  if (state_ == State::stopped) start();
}

// While it stops they are for the next start, which whoever asks now waits for.
void LanguageServer::offer_folders(const std::string& folders) {
  const bool is_down = state_ == State::stopped || state_ == State::stopping;
  if (is_down && !folders.empty()) offered_folders_ = folders;
}

// Nothing: the PATH of the settings has the program, or nobody has.
std::optional<std::string> LanguageServer::further_path() {
  const std::string& program = definition_.command.front();
  const auto usual = settings_.environment.find("PATH");
  const std::string path = usual == settings_.environment.end() ? std::string() : usual->second;
  const bool is_settled = program.find('/') != program.npos || definition_.env.contains("PATH");
  if (is_settled || !process::find_program(program, path).empty()) return std::nullopt;
  const std::string offered =
      offered_folders_.empty() || path.empty() ? offered_folders_ : offered_folders_ + ':' + path;
  for (const std::string& candidate : {kept_path_, offered}) {
    if (!candidate.empty() && !process::find_program(program, candidate).empty()) return kept_path_ = candidate;
  }
  return std::nullopt;
}

void LanguageServer::start() {
  clear(restart_timer_);
  state_ = State::starting;
  ++life_;
  Definition started = definition_;
  if (std::optional<std::string> path = further_path()) started.env["PATH"] = std::move(*path);
  progress_.clear();
  compile_commands_ = is_clangd(definition_) ? find_compile_commands(root_).value_or("") : "";
  if (!compile_commands_.empty()) started.command.push_back("--compile-commands-dir=" + compile_commands_);
  try {
    session_ = std::make_unique<Session>(
        loop_, log_, started, root_, settings_,
        Session::Events{.ready = [this] { session_ready(); },
                        .notification = [this](std::string_view method,
                                               std::string_view params) { take_notification(method, params); },
                        .read = [this] { become_ready(); },
                        .down = [this](const Failure& why) { session_down(why); },
                        .gone = [this] { session_gone(); }});
  } catch (const process::LaunchError& error) {
    start_failed(launch_failure(definition_, error));
  } catch (const std::system_error& error) {
    start_failed({.cause = Cause::exec_failed, .message = name() + ": " + error.what(), .server = name()});
  }
}

void LanguageServer::start_failed(Failure why) {
  loop_.defer(lifetime_.bind([this, life = life_, why = std::move(why)] {
    if (life == life_) session_down(why);
  }));
}

// It is shown its documents before anything else. There may be so many that it needs a while to read them.
void LanguageServer::session_ready() {
  documents_.open_all(session_->capabilities());
  become_ready();
}

void LanguageServer::become_ready() {
  const bool may_be_asked = session_->is_ready() && session_->waiting_bytes() <= settings_.most_waiting / 2;
  if (state_ != State::starting || !may_be_asked) return;
  state_ = State::ready;
  ready_since_ = last_use_ = loop_.now();
  failure_.reset();
  log_.info("Language server ready", {{"server", name()}, {"pid", session_->pid()}});
  watch_idleness();
  watch_memory();
  serve_users(nullptr);
}

void LanguageServer::session_down(const Failure& why) {
  const bool was_ready = state_ == State::ready;
  const base::Duration served = was_ready ? loop_.now() - ready_since_ : base::Duration::zero();
  log_.warn("Language server down", {{"server", name()}, {"cause", name_of(why.cause)}, {"what", why.message}});
  documents_.server_ended();
  progress_.clear();
  clear(idle_timer_);
  clear(memory_timer_);
  failure_ = why;
  if (why.cause == Cause::stopped) failure_.reset();
  const base::Duration wait =
      crashes_.note_failure(served, session_ ? session_->in_flight_at_end() : std::vector<RequestMark>());
  const bool can_try_at_once =
      why.cause == Cause::not_found || why.cause == Cause::exec_failed || why.cause == Cause::cwd_missing;
  next_start_ = can_try_at_once ? loop_.now() : loop_.now() + wait;
  state_ = was_ready ? State::restarting : session_ ? State::stopping : State::stopped;
  if (was_ready) {
    restart_timer_ = loop_.at(next_start_, [this] {
      restart_timer_.reset();
      restart_if_due();
    });
  } else {
    serve_users(&why);
  }
  diagnostics_.server_down(why);
}

void LanguageServer::session_gone() {
  session_.reset();
  const bool restarting = state_ == State::restarting;
  if (!restarting) state_ = State::stopped;
  for (const std::function<void()>& tell : std::exchange(stop_waiters_, {})) tell();
  if (restarting) return restart_if_due();
  if (!users_.empty() && state_ == State::stopped) start();
}

// Both the wait and the old process must be over.
void LanguageServer::restart_if_due() {
  if (state_ == State::restarting && !restart_timer_ && !session_) start();
}

void LanguageServer::serve_users(const Failure* failure) {
  // Those that come meanwhile are for the next time, unless it is ready.
  const std::optional<Failure> kept = failure != nullptr ? std::optional(*failure) : std::nullopt;
  for (Use& use : std::exchange(users_, {})) {
    const bool is_too_late = failure == nullptr && state_ != State::ready;  // one before it had it stopped
    is_too_late ? this->use(std::move(use)) : use(kept ? &*kept : nullptr);
  }
}

std::uint64_t LanguageServer::call(std::string_view method, std::string_view params, base::Duration patience,
                                   Session::Callback callback) {
  last_use_ = loop_.now();
  const RequestMark mark = mark_of(method, params);
  if (crashes_.refuses(mark)) {
    return refuse({.cause = Cause::refused,
                   .message = name() + ": crashed three times with this request, so it is not sent again",
                   .server = name()},
                  std::move(callback));
  }
  if (state_ != State::ready) {
    return refuse({.cause = Cause::stopped, .message = name() + ": does not run any more", .server = name()},
                  std::move(callback));
  }
  const std::uint64_t id =
      session_->call(method, params, patience, [this, mark, callback = std::move(callback)](CallResult result) {
        if (!result.error) crashes_.note_answer(mark);
        callback(std::move(result));
      });
  return life_ << life_shift | id;
}

std::uint64_t LanguageServer::refuse(const Failure& why, Session::Callback callback) {
  loop_.defer([callback = std::move(callback), error = to_error(why)] { callback({.error = error}); });
  return 0;
}

void LanguageServer::cancel(std::uint64_t call) {
  constexpr std::uint64_t id_mask = (std::uint64_t{1} << life_shift) - 1;
  if (session_ && call >> life_shift == life_) session_->cancel(call & id_mask);
}

void LanguageServer::notify(std::string_view method, std::string_view params) {
  last_use_ = loop_.now();
  session_->notify(method, params);
}

void LanguageServer::check_load() const {
  if (!session_ || session_->waiting_bytes() < settings_.most_waiting) return;
  throw to_error({.cause = Cause::overloaded, .message = name() + ": does not take what it is sent", .server = name()});
}

void LanguageServer::take_notification(std::string_view method, std::string_view params) {
  if (method == "textDocument/publishDiagnostics") return diagnostics_.take(params, loop_.now());
  if (method == "$/progress") return progress_.take(params);
  if (method == "window/logMessage" || method == "window/showMessage") {
    log_.debug("Language server says", {{"server", name()}, {"message", base::JsonText{params}}});
  }
}

void LanguageServer::stop(std::function<void()> then) {
  crashes_.forget();
  failure_.reset();
  clear(restart_timer_);
  clear(idle_timer_);
  clear(memory_timer_);
  documents_.server_ended();
  progress_.clear();
  const State before = std::exchange(state_, session_ ? State::stopping : State::stopped);
  if (then && session_) {
    stop_waiters_.push_back(std::move(then));
  } else if (then) {
    loop_.defer(std::move(then));
  }
  if (session_ && (before == State::starting || before == State::ready)) session_->stop();
  const Failure why{.cause = Cause::stopped, .message = name() + ": was stopped", .server = name()};
  serve_users(&why);
  diagnostics_.server_down(why);
}

// A project may be built, or built elsewhere, after its server was started; or what was built is gone.
void LanguageServer::look_for_compile_commands() {
  constexpr std::chrono::seconds between_looks{5};
  const bool is_at_rest = state_ == State::ready && session_->pending() == 0 && !diagnostics_.is_awaited();
  if (!is_clangd(definition_) || !is_at_rest || loop_.now() < next_look_) return;
  next_look_ = loop_.now() + between_looks;
  if (find_compile_commands(root_).value_or("") != compile_commands_) stop();
}

void LanguageServer::watch_idleness() {
  if (definition_.idle <= std::chrono::milliseconds::zero()) return;
  idle_timer_ = loop_.at(last_use_ + definition_.idle, [this] {
    idle_timer_.reset();
    if (session_->pending() != 0 || diagnostics_.is_awaited()) last_use_ = loop_.now();
    if (loop_.now() < last_use_ + definition_.idle) return watch_idleness();
    log_.info("Language server is idle", {{"server", name()}});
    documents_.forget_disk();
    stop();
  });
}

void LanguageServer::watch_memory() {
  if (definition_.max_memory == 0) return;
  memory_timer_ = loop_.after(between_memory_looks, [this] { look_at_memory(); });
}

// What the whole tree has in memory. A limit on addresses would not do: many servers reserve far more than they use.
void LanguageServer::look_at_memory() {
  memory_timer_.reset();
  std::uint64_t used = 0;
  for (const auto& process : process::descendants(session_->guard_pid())) used += process::resident_memory(process.pid);
  if (used <= definition_.max_memory) return watch_memory();
  session_->kill(Cause::crashed, "used " + mebibytes(used) + ", more than its " + mebibytes(definition_.max_memory));
}

boost::json::object LanguageServer::describe() const {
  boost::json::object out{{"name", name()}, {"root", root_}, {"state", name_of(state_)}};
  boost::json::array command;
  for (const std::string& word : definition_.command) command.emplace_back(word);
  out["command"] = std::move(command);
  if (session_ && session_->pid() != 0) out["pid"] = session_->pid();
  if (state_ == State::ready) {
    out["serverName"] = capabilities().server_name;
    out["serverVersion"] = capabilities().server_version;
    out["encoding"] = name_of(capabilities().encoding);
  }
  if (progress_.is_under_way()) out["indexing"] = progress_.text();
  if (!compile_commands_.empty()) out["compileCommands"] = compile_commands_;
  if (lacks_compile_commands() && !finds_compile_commands(root_ + "/x")) out["note"] = no_compile_commands;
  out["documents"] = documents_.size();
  out["pending"] = session_ ? session_->pending() : 0;
  out["failures"] = crashes_.failures();
  if (failure_) {
    boost::json::object failure = bridge::describe(*failure_);
    failure["message"] = failure_->message;
    out["failure"] = std::move(failure);
  }
  return out;
}

void LanguageServer::clear(std::optional<transport::Loop::Timer>& timer) { timer.reset(); }

}  // namespace duet::bridge
