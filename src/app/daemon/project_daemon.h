#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "app/daemon/daemon_end.h"
#include "app/daemon/descriptors.h"
#include "app/daemon/event_hub.h"
#include "app/daemon/idle_watch.h"
#include "app/daemon/kept_metrics.h"
#include "app/daemon/loop_watch.h"
#include "app/daemon/service_manager.h"
#include "app/daemon/settings_watch.h"
#include "app/daemon/socket_guard.h"
#include "app/daemon/task_room.h"
#include "app/doors/http_service.h"
#include "app/doors/tls_service.h"
#include "app/mcp/mcp_service.h"
#include "app/project/last_end.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "app/settings/settings.h"
#include "automation/engine.h"
#include "bridge/bridge.h"
#include "duet/base/log.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"
#include "process/signals.h"

namespace duet::app {

/// What is wrong with the daemon, by subsystem, until it is right again.
class Problems {
 public:
  /// An empty message: nothing is wrong any more.
  void set(const std::string& subsystem, std::string message);
  bool empty() const { return known_.empty(); }
  std::vector<Problem> list() const;

 private:
  std::map<std::string, std::string> known_;
};

/// Where clients connect.
struct DaemonAddress {
  std::string path;
  std::string shown;       ///< for people
  bool elsewhere = false;  ///< not in the state folder
};

/// The daemon of a project, put together: the server, its events, tasks, automation and language servers, and the
/// methods that reach them. It is made by whoever holds the project's lock. For the loop's thread only.
class ProjectDaemon {
 public:
  struct Context {
    const Project& project;
    const StateFolder& folder;
    const DaemonLock& lock;
    ServiceManager& manager;
    base::Log& log;
    SettingsPlaces places;
    DaemonAddress address;
    std::optional<transport::TcpAddress> http = {};  ///< by the command line, over the settings
    std::optional<transport::TcpAddress> tls = {};   ///< likewise
    mode_t umask_of_tasks = 022;
    bool trace = false;
    DescriptorBudget descriptors = {};
    std::optional<LastEnd> last_end = {};        ///< of the daemon before, if it was not stopped
    std::optional<base::Duration> idle = {};     ///< it ends when nobody has used it for so long
    std::optional<std::string> started_by = {};  ///< what has started it, if that said so
    /// Its folder is being removed: to make a file there now would leave it half removed.
    std::shared_ptr<std::atomic<bool>> makes_no_file = std::make_shared<std::atomic<bool>>(false);
  };

  /// Throws Failure.
  ProjectDaemon(Context context, Settings settings);
  ProjectDaemon(const ProjectDaemon&) = delete;
  ProjectDaemon& operator=(const ProjectDaemon&) = delete;
  ~ProjectDaemon() = default;

  /// From here on clients are answered. Throws Failure.
  void open();
  /// Until somebody stops it. What the loop throws ends the process, which has its last words then.
  void run() noexcept;
  /// What to go on as, once it has stopped; none if that is the end.
  const std::shared_ptr<const base::Fd>& successor() const { return end_.successor(); }

 private:
  struct SettingsAndPlan {
    Settings settings;
    automation::Engine::Plan plan;
  };

  peer::ServerEvents server_events();
  HttpService::Context http_context();
  TlsService::Context tls_context();
  void open_doors(ServiceManager::Listeners passed);
  void watch_revoked();
  TaskRoom::Events task_events();
  automation::Engine::Plan check_rules() const;
  void begin_automation();
  void add_methods();
  void listen(const std::function<void()>& attempt);
  void tell_watchdog();
  bool look_at_files();
  void stop_without_files(const std::string& reason);
  bool is_used() const;
  void note_use();
  void forget_caller(std::uint64_t number);
  void take_stop(const StopRequest& request);
  void stop(std::string_view reason, const StopRequest& request);
  void read_journal();
  void tell(std::string_view kind, const boost::json::object& params);
  void take_store_health(const task::Store::Health& health);
  void take_queue_problem(const std::string& problem);
  void look_at_readers();
  void note_worker() const;
  void take_signal(int signal);
  tl::expected<SettingsAndPlan, std::string> read_settings_and_plan() const;
  tl::expected<Reloaded, std::string> reload();
  Reloaded reload_or_refuse();
  void take_saved_settings();
  void tell_change(const SettingsChange& change);
  void set_settings_fault(const std::string& fault);
  void note_trust();
  std::vector<std::string> settings_files() const;
  void end_work(const StopRequest& request, std::function<void()> done);
  task::TaskSettings task_settings();
  void take_full(bool full);
  void look_at_limits();
  MetricLevels metric_levels() const;
  DaemonStatus status() const;
  Subsystems subsystems() const;

  Context context_;
  Settings settings_;
  std::string settings_fault_;  // of those that were not taken over
  base::Log& log_;
  transport::Loop loop_;
  transport::Loop::Timer watchdog_;
  process::Signals signals_;  // before anything that may start a thread
  base::UtcTime started_at_;
  base::TimePoint started_;
  mutable Problems problems_;
  KeptMetrics metrics_;  // what it asks is there when the loop turns
  LoopWatch watch_;
  peer::Server server_;
  base::Fd executable_;
  TaskRoom tasks_;
  EventHub hub_;
  DaemonEnd end_;
  automation::Engine automation_;
  bool automation_begun_ = false;
  bridge::Bridge bridge_;
  mcp::McpService mcp_;
  HttpService http_;  // behind what its connections ask, as the next one
  TlsService tls_;
  std::optional<SocketGuard> guard_;
  std::optional<SettingsWatch> settings_watch_;
  std::optional<SettingsWatch> revoked_watch_;
  std::string revoked_file_;  // that it watches
  std::optional<IdleWatch> idle_watch_;
};

}  // namespace duet::app
