#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "bridge/compile_commands.h"
#include "bridge/crash_record.h"
#include "bridge/definition.h"
#include "bridge/diagnostics.h"
#include "bridge/documents.h"
#include "bridge/session.h"
#include "bridge/work_progress.h"
#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// A language server for one root folder: started when it is needed, kept warm, brought back when it crashes, let go
/// when it is idle or too large.
///
/// Whoever wants something calls use() and gets a ready server or the reason why there is none. After a crash the
/// server is started again after a wait, with its documents; meanwhile callers wait. After a start that failed they
/// are refused with its cause until the wait is over. For the loop's thread only.
class LanguageServer {
 public:
  enum class State : std::uint8_t { stopped, starting, ready, stopping, restarting };
  static constexpr std::size_t most_users = 1000;  ///< that wait for a start

  /// `failure` none: it is ready. Called at once or from the loop.
  using Use = std::function<void(const Failure* failure)>;

  LanguageServer(transport::Loop& loop, base::Log& log, Definition definition, std::string root,
                 const ServerSettings& settings);
  LanguageServer(const LanguageServer&) = delete;
  LanguageServer& operator=(const LanguageServer&) = delete;
  ~LanguageServer();

  const Definition& definition() const { return definition_; }
  const std::string& name() const { return definition_.name; }
  const std::string& root() const { return root_; }
  State state() const { return state_; }
  /// Of the life that runs. Only while it is ready.
  const Capabilities& capabilities() const { return session_->capabilities(); }
  base::Duration handshake_time() const { return session_->handshake_time(); }
  Documents& documents() { return documents_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  /// What it says that it is working on.
  const WorkProgress& progress() const { return progress_; }
  /// It is clangd, and was not told where a compile_commands.json is (compile_commands.h).
  bool lacks_compile_commands() const { return is_clangd(definition_) && compile_commands_.empty(); }
  /// Stops one that would be told of another folder by now, if it has nothing to do. Looks now and then only.
  void look_for_compile_commands();

  /// Where the program is looked for at the next start if it is not on the PATH of the settings: absolute folders,
  /// with colons between them. One that is found there is started with them in its PATH, in front, and so it is at
  /// every later start. Nothing changes for one that runs, or whose definition has a PATH of its own.
  void offer_folders(const std::string& folders);
  void use(Use use);

  /// While it is ready, as the three below; else it fails. A request that was there in three crashes in a row is
  /// refused.
  std::uint64_t call(std::string_view method, std::string_view params, base::Duration patience,
                     Session::Callback callback);
  void cancel(std::uint64_t call);
  void notify(std::string_view method, std::string_view params);
  /// Throws rpc::Error if so much waits to be written already that nothing should be added. For who is about to send
  /// a text, which has no other bound.
  void check_load() const;

  /// `then` is called when no process is left. Users that come meanwhile start it again.
  void stop(std::function<void()> then = {});

  /// `{name, root, command, state, pid?, version?, documents, pending, restarts, indexing?, compileCommands?,
  /// failure?}`
  boost::json::object describe() const;

 private:
  void start();
  std::optional<std::string> further_path();
  void start_failed(Failure why);
  void session_ready();
  void become_ready();
  void session_down(const Failure& why);
  void session_gone();
  void restart_if_due();
  void serve_users(const Failure* failure);
  std::uint64_t refuse(const Failure& why, Session::Callback callback);
  void take_notification(std::string_view method, std::string_view params);
  void watch_idleness();
  void watch_memory();
  void look_at_memory();
  static void clear(std::optional<transport::Loop::Timer>& timer);

  transport::Loop& loop_;
  base::Log& log_;
  Definition definition_;
  std::string root_;
  const ServerSettings& settings_;

  std::string offered_folders_;
  std::string kept_path_;         // where the program was found
  std::string compile_commands_;  // the folder that clangd was told of
  base::TimePoint next_look_;     // for that folder

  State state_ = State::stopped;
  std::unique_ptr<Session> session_;
  std::uint64_t life_ = 0;  // calls belong to one
  base::TimePoint ready_since_;
  std::deque<Use> users_;
  std::vector<std::function<void()>> stop_waiters_;
  CrashRecord crashes_;
  std::optional<Failure> failure_;  // the latest
  base::TimePoint next_start_;      // after a failure
  std::optional<transport::Loop::Timer> restart_timer_;
  std::optional<transport::Loop::Timer> idle_timer_;
  std::optional<transport::Loop::Timer> memory_timer_;
  base::TimePoint last_use_;

  Documents documents_;
  Diagnostics diagnostics_;
  WorkProgress progress_;
  base::Lifetime lifetime_;
};

std::string_view name_of(LanguageServer::State state);

}  // namespace duet::bridge
