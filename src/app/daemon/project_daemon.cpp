#include "app/daemon/project_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <variant>

#include "app/daemon/task_log.h"
#include "app/doors/roles.h"
#include "app/log/trace.h"
#include "app/methods/automation_methods.h"
#include "app/methods/cluster_methods.h"
#include "app/methods/daemon_methods.h"
#include "app/methods/door_methods.h"
#include "app/methods/lsp_methods.h"
#include "app/methods/metrics_methods.h"
#include "app/methods/task_methods.h"
#include "app/methods/test_methods.h"
#include "app/project/failure.h"
#include "app/project/state_owner.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"
#include "duet/transport/unix_acceptor.h"
#include "duet/version.h"
#include "process/launch.h"
#include "task/refusal.h"
#include "task/store_secrets.h"

namespace duet::app {

using boost::json::object;

namespace {

bool is_socket(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

std::string why_not_to_listen(const std::string& path, const std::error_code& error) {
  switch (error.value()) {
    case EADDRINUSE:
      if (!is_socket(path)) return "something that is no socket is there: move it away, or use --socket";
      return "another program listens there. If it is a service manager, 'daemon status' has it start the daemon; else "
             "end that program, or use --socket";
    case EPERM:
    case EOPNOTSUPP:
    case ENOSYS:
      return "this file system refuses sockets: choose a place elsewhere with --socket";
    case ENOENT:
      return "there is no such folder: make it, or choose another place with --socket";
    case ENOSPC:
    case EDQUOT:
      return error.message() + ": make room on its disk, or choose another place with --socket";
    default:
      return error.message() + ": choose another place with --socket";
  }
}

process::Environment environment_of_servers(const task::ClusterSettings& cluster) {
  process::Environment environment = process::current_environment();
  return cluster.store ? task::without_store_secrets(std::move(environment)) : environment;
}

}  // namespace

void Problems::set(const std::string& subsystem, std::string message) {
  if (message.empty()) {
    known_.erase(subsystem);
  } else {
    known_[subsystem] = std::move(message);
  }
}

std::vector<Problem> Problems::list() const {
  std::vector<Problem> all;
  for (const auto& [subsystem, message] : known_) all.push_back({subsystem, message});
  return all;
}

ProjectDaemon::ProjectDaemon(Context context, Settings settings)
    : context_(std::move(context)),
      settings_(std::move(settings)),
      log_(context_.log),
      signals_(loop_, {SIGTERM, SIGINT, SIGHUP}, [this](int signal) { take_signal(signal); }),
      started_at_(loop_.clock().utc()),
      started_(loop_.now()),
      metrics_(loop_, log_, context_.folder, [this] { return metric_levels(); }),
      watch_(loop_, log_,
             {.on_problem = [this](std::string problem) { problems_.set("loop", std::move(problem)); },
              .on_turn =
                  [this](base::TimePoint now, base::Duration took) {
                    metrics_.metrics().take_turn(now, took, server_.methods().calls());
                  }}),
      server_(loop_, log_, server_events(), {.max_clients = context_.descriptors.clients}),
      executable_(base::check_call(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe")),
      tasks_(loop_, log_,
             {.project = context_.project,
              .folder = context_.folder,
              .lock = context_.lock,
              .executable = executable_.get(),
              .umask_of_tasks = context_.umask_of_tasks,
              .cluster = settings_.cluster},
             task_settings(), task_events()),
      hub_(loop_, tasks_.journal()),
      end_(
          loop_, log_, server_, [this](std::string_view kind, const object& params) { tell(kind, params); },
          context_.manager),
      automation_(loop_, log_, context_.project.directory.get(), tasks_.store(), tasks_.queue()),
      bridge_(loop_, log_,
              {.guard = {.executable = executable_.get()},
               .client_version = kVersion,
               .environment = environment_of_servers(settings_.cluster)},
              context_.project.root, settings_.servers),
      mcp_({.loop = loop_, .log = log_, .server = server_, .root = context_.project.root}),
      http_(http_context()),
      tls_(tls_context()) {
  end_.set_work([this](const StopRequest& request, std::function<void()> done) { end_work(request, std::move(done)); });
  end_.set_doors({.count = [this] { return http_.connection_count() + tls_.connection_count(); },
                  .take_nobody =
                      [this] {
                        http_.take_nobody();
                        tls_.take_nobody();
                      },
                  .stop =
                      [this](bool restarting) {
                        http_.stop(restarting);
                        tls_.stop(restarting);
                      }});
  look_at_limits();
  add_methods();
  read_journal();
  note_trust();
}

peer::ServerEvents ProjectDaemon::server_events() {
  peer::ServerEvents events{.on_empty = [this] { end_.clients_gone(); },
                            .on_full = [this](bool full) { take_full(full); },
                            .on_opened =
                                [this](peer::Connection& client) {
                                  note_use();
                                  http_.client_opened(client);
                                  tls_.client_opened(client);
                                  hub_.client_opened(client);
                                  metrics_.metrics().levels_changed();
                                },
                            .on_load_changed = [this](peer::Connection& client) { hub_.client_load_changed(client); },
                            .on_forgotten =
                                [this](std::uint64_t client) {
                                  http_.client_forgotten(client);
                                  tls_.client_forgotten(client);
                                  hub_.client_forgotten(client);
                                  bridge_.client_gone(client);
                                  metrics_.metrics().levels_changed();
                                }};
  if (context_.trace) {
    events.wrap_channel = [this](std::unique_ptr<transport::Channel> channel, const peer::Peer& peer) {
      // Of a WebSocket there are frames here, and no lines; inside TLS nothing that could be read.
      return peer.admission ? std::move(channel) : traced(std::move(channel), log_, peer.connection);
    };
  }
  return events;
}

HttpService::Context ProjectDaemon::http_context() {
  return {.loop = loop_,
          .log = log_,
          .server = server_,
          .events = hub_,
          .folder = context_.folder,
          .most_connections = context_.descriptors.http,
          .set_problem = [this](const std::string& subsystem,
                                std::string problem) { problems_.set(subsystem, std::move(problem)); },
          .end_caller = [this](std::uint64_t number) { forget_caller(number); },
          .metrics = [this] { return metrics_.metrics().prometheus_text(); },
          .mcp = &mcp_,
          .on_empty = [this] { end_.clients_gone(); }};
}

TlsService::Context ProjectDaemon::tls_context() {
  return {.loop = loop_,
          .log = log_,
          .server = server_,
          .events = hub_,
          .folder = context_.folder,
          .files = tls_folder(context_.places),
          .most_connections = context_.descriptors.tls,
          .end_caller = [this](std::uint64_t number) { forget_caller(number); },
          .metrics = [this] { return metrics_.metrics().prometheus_text(); },
          .on_empty = [this] { end_.clients_gone(); }};
}

TaskRoom::Events ProjectDaemon::task_events() {
  return {.output = {.wants = [this](task::TaskId id) { return hub_.wants_output(task::to_text(id)); },
                     .tell =
                         [this](task::TaskId id, std::uint64_t offset, task::Stream stream, std::string_view text) {
                           hub_.emit_output(task::to_text(id), offset, text, task::name_of(stream));
                         }},
          .store = [this](const task::Store::Health& health) { take_store_health(health); },
          .queue = [this](const std::string& problem) { take_queue_problem(problem); },
          .journal_began_anew = [this] { hub_.journal_began_anew(); },
          .starts = [this](const task::Task& task) { automation_.task_starts(task); }};
}

void ProjectDaemon::take_queue_problem(const std::string& problem) {
  problems_.set("queue", problem);
  problem.empty() ? log_.info("the queue is joined") : log_.error("the queue cannot be used", {{"what", problem}});
}

// Of a queue that machines share, events are read only while somebody wants them.
void ProjectDaemon::look_at_readers() {
  if (tasks_.shared() != nullptr) tasks_.shared()->want_events(hub_.has_clients() || !settings_.rules.empty());
}

// In this order: the log, clients, those who wait, the rules, the metrics.
void ProjectDaemon::read_journal() {
  task::Journal& journal = tasks_.journal();
  // The worker of a shared queue logs what it does itself.
  if (tasks_.shared() == nullptr) journal.add_reader([this](const task::Event& event) { log_task_event(log_, event); });
  journal.add_reader([this](const task::Event&) { hub_.take_news(); });
  journal.add_reader([this](const task::Event& event) { tasks_.queue().take(event); });
  journal.add_reader([this](const task::Event& event) { automation_.take(event); });
  journal.add_reader([this](const task::Event& event) { metrics_.metrics().take(event); });
}

// An event that concerns no task. Where it cannot be kept, those who are there hear of it all the same.
void ProjectDaemon::tell(std::string_view kind, const object& params) {
  const auto text = std::make_shared<std::string>(rpc::to_text(params));
  const bool is_local = tasks_.shared() != nullptr && kind == "daemonStopping";  // others go on
  if (tasks_.store().health().lost || is_local) return hub_.tell_unkept(kind, *text);
  tasks_.store().write({.apply = [kind = std::string(kind),
                                  text](task::StoreWriter& writer) { writer.tell(kind, 0, rpc::ObjectText(*text)); },
                        .done =
                            [this, kind = std::string(kind), text](bool kept) {
                              if (!kept) hub_.tell_unkept(kind, *text);
                            }});
}

void ProjectDaemon::add_methods() {
  peer::Methods& methods = server_.methods();
  add_daemon_methods(methods, loop_.clock(),
                     {.status = [this] { return status(); },
                      .reload = [this] { return reload_or_refuse(); },
                      .stop = [this](const StopRequest& request) { take_stop(request); }});
  add_metrics_methods(methods, loop_.clock(), metrics_.metrics());
  hub_.add_subscribe_method(methods, [this] { tasks_.queue().output_audience_changed(); });
  add_task_methods(methods, tasks_.queue());
  if (tasks_.shared() != nullptr) add_cluster_methods(methods, *tasks_.shared());
  add_automation_methods(methods, automation_);
  add_lsp_methods(methods, bridge_);
  add_door_methods(methods, loop_.clock(),
                   {.tokens = http_.tokens(),
                    .codes = http_.codes(),
                    .project = context_.project.root,
                    .http_url = [this] { return http_.url(); },
                    .open_http = [this] { return HttpOpened{http_.open_on_demand()}; }});
  methods.set_guard([this, guard = door_guard(log_)](const peer::Method& method, const peer::Peer& peer) {
    const bool hears_no_events = method.name == "events.subscribe" && !hub_.knows(peer.connection);  // by POST /rpc
    return hears_no_events ? rpc::method_not_found() : guard(method, peer);
  });
#ifdef DUET_TEST_METHODS
  add_test_methods(methods, loop_);
#endif
}

void ProjectDaemon::open() {
  tasks_.join();
  ServiceManager::Listeners passed = context_.manager.take_listeners();
  const bool activated = static_cast<bool>(passed.unix);
  if (activated) {
    server_.listen(transport::inherited_acceptor(loop_, log_, std::move(passed.unix)));
  } else {
    listen([this] { server_.start(context_.address.path); });
  }
  open_doors(std::move(passed));
  tasks_.begin();
  note_worker();
  hub_.tell_of_clients([this](bool /*some*/) { look_at_readers(); });
  check_rules();
  tasks_.when_joined([this] { begin_automation(); });  // which events are new to rules, only the queue knows
  look_at_readers();
  guard_.emplace(loop_, log_, context_.project, context_.folder, [this] { return look_at_files(); });
  if (context_.address.elsewhere && !activated) guard_->watch_socket(context_.address.path);
  problems_.set("watch", guard_->problem());
  context_.folder.remove(settings_fault_name);  // of a daemon before
  settings_watch_.emplace(loop_, log_, settings_files(), [this] { take_saved_settings(); });
  take_saved_settings();  // what was saved since they were read
  tell_watchdog();
  if (context_.idle) {
    idle_watch_.emplace(loop_, *context_.idle,
                        IdleWatch::Calls{.is_used = [this] { return is_used(); }, .end = [this] { stop("idle", {}); }});
  }
  log_.info("listening", {{"socket", context_.address.shown}});
}

void ProjectDaemon::open_doors(ServiceManager::Listeners passed) {
  if (passed.http) {
    http_.start(std::move(passed.http), settings_.http);
  } else {
    http_.start(settings_.http, context_.http);
  }
  if (passed.tls) {
    tls_.start(std::move(passed.tls), settings_.tls, settings_.http.hosts);
  } else {
    tls_.start(settings_.tls, settings_.http.hosts, context_.tls);
  }
  watch_revoked();
}

// For commands, which need not ask then.
void ProjectDaemon::note_worker() const {
  if (tasks_.shared() == nullptr) return context_.folder.remove(worker_file_name);
  context_.folder.write_small(worker_file_name, settings_.cluster.name + '\n');
}

automation::Engine::Plan ProjectDaemon::check_rules() const {
  auto plan = automation::Engine::prepare(settings_.rules, settings_.watch);
  if (!plan) throw Failure(plan.error());
  return std::move(*plan);
}

void ProjectDaemon::begin_automation() {
  automation_.configure(check_rules());
  automation_begun_ = true;
  std::vector<task::Task> running;
  for (const task::TaskId id : tasks_.queue().running()) {
    if (auto task = tasks_.queue().known(id); task && *task) running.push_back(std::move(**task));
  }
  automation_.begin(running);
}

void ProjectDaemon::listen(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const std::system_error& error) {
    throw Failure(
        "cannot listen at " + context_.address.shown + ": " + why_not_to_listen(context_.address.path, error.code()),
        code_of_refused_start(error.code().value()));
  }
}

// From the loop, so that it means that the loop turns.
void ProjectDaemon::tell_watchdog() {
  const auto every = context_.manager.watchdog();
  if (!every) return;
  context_.manager.tell("WATCHDOG=1");
  watchdog_ = loop_.after(*every, [this] { tell_watchdog(); });
}

void ProjectDaemon::run() noexcept {
  loop_.run();
  if (!*context_.makes_no_file && context_.lock.is_in_place(context_.project)) metrics_.save();
}

// A daemon whose successor could not start refuses to be restarted, and goes on.
void ProjectDaemon::take_stop(const StopRequest& request) {
  const std::string refused = "the daemon would not start again: ";
  if (request.successor && !end_.has_begun()) {
    const auto read = read_settings_and_plan();
    if (!read) throw task::unavailable("settings", refused + read.error());
    const auto why = why_not_our_state(context_.project, context_.folder);
    if (why) throw task::unavailable("store", refused + *why);
    const std::string closed = tls_.why_not_again(read->settings.tls);
    if (!closed.empty()) throw task::unavailable("tls", refused + closed);
  }
  // Whoever restarts it has looked at the rest, but does not know which certificates this one holds for revoked.
  if (request.restarting && !end_.has_begun()) {
    const std::string closed = tls_.why_not_again(settings_.tls);
    if (!closed.empty()) throw task::unavailable("tls", refused + closed);
  }
  stop("asked by a client", request);
}

// Whoever asks for work after a stop was answered is refused, though it has not begun yet.
void ProjectDaemon::stop(std::string_view reason, const StopRequest& request) {
  automation_.close();
  tasks_.queue().close();
  end_.begin(reason, request);
}

// A task that waits for its time or a rule that waits for an event would wait in vain without a daemon.
bool ProjectDaemon::is_used() const {
  const task::StateCounts& counts = tasks_.queue().counts();
  const bool has_tasks = counts.at(static_cast<std::size_t>(task::State::queued)) > 0 ||
                         counts.at(static_cast<std::size_t>(task::State::running)) > 0;
  const bool is_working = tasks_.shared() != nullptr ? tasks_.queue().has_runs() : has_tasks;  // others do the rest
  return is_working || server_.client_count() > 0 || http_.connection_count() > 0 || tls_.connection_count() > 0 ||
         automation_.has_work();
}

// One that has asked by HTTP.
void ProjectDaemon::forget_caller(std::uint64_t number) {
  note_use();
  bridge_.client_gone(number);
}

void ProjectDaemon::note_use() {
  if (idle_watch_) idle_watch_->note_use();
}

// Called when files of the state folder went or came. False: something is still to be put right.
bool ProjectDaemon::look_at_files() {
  const bool has_folder = context_.lock.is_in_place(context_.project);
  if (!has_folder || !tasks_.store().is_in_place()) {
    stop_without_files(has_folder ? "the store was removed or replaced" : "the state folder was removed or replaced");
    return true;
  }
  if (end_.has_begun()) return true;
  if (server_.is_reachable()) return true;
  try {
    listen([this] { server_.restore(); });
  } catch (const Failure& failure) {
    log_.warn("the socket file was removed and cannot be put back", {{"reason", failure.what()}});
    problems_.set("ipc", failure.what());
    return false;
  }
  log_.warn("the socket file was removed; it is back");
  problems_.set("ipc", {});
  return true;
}

// Whoever removes the folder would find a file in it that was not there when they looked. A stop that has begun goes
// on.
void ProjectDaemon::stop_without_files(const std::string& reason) {
  *context_.makes_no_file = true;
  if (end_.has_begun()) return;
  log_.error(reason);
  stop(reason, {.force = true});
}

void ProjectDaemon::take_store_health(const task::Store::Health& health) {
  problems_.set("store", health.problem);
  if (health.lost) {
    *context_.makes_no_file = true;
    log_.error("the store was removed or replaced", {{"what", health.problem}});
    return stop("the store was removed or replaced", {.force = true});
  }
  if (!health.problem.empty()) return log_.error("the store cannot be written", {{"what", health.problem}});
  log_.info("the store can be written again");
  tasks_.store_recovered();
}

// As many tasks at once as there are descriptors for.
task::TaskSettings ProjectDaemon::task_settings() {
  task::TaskSettings settings = settings_.tasks;
  const DescriptorBudget& budget = context_.descriptors;
  const bool too_many = settings.max_running > budget.tasks;
  if (too_many) settings.max_running = budget.tasks;
  problems_.set("supervisor", !too_many
                                  ? ""
                                  : "max_running is " + std::to_string(settings_.tasks.max_running) + ", but " +
                                        std::to_string(budget.limit) + " descriptors are enough for " +
                                        std::to_string(budget.tasks) + " tasks at once: raise the limit ('ulimit -n')");
  return settings;
}

// Tasks of an agent whose limits cannot be kept are refused.
void ProjectDaemon::look_at_limits() {
  std::string problem;
  for (const auto& [name, agent] : settings_.tasks.agents) {
    const auto provided = tasks_.queue().provide_for(agent.limits);
    if (!provided && problem.empty())
      problem = "agents." + name + " has limits that cannot be kept: " + provided.error();
  }
  problems_.set("limits", std::move(problem));
}

void ProjectDaemon::take_full(bool full) {
  if (!full) {
    log_.info("there is room for clients again");
    return problems_.set("clients", {});
  }
  log_.warn("there are as many clients as there is room for",
            {{"clients", server_.client_count()}, {"descriptors", context_.descriptors.limit}});
  problems_.set("clients", std::to_string(server_.client_count()) + " clients are as many as " +
                               std::to_string(context_.descriptors.limit) +
                               " descriptors are enough for, and who comes now is served for a moment only: end some, "
                               "or raise the limit ('ulimit -n')");
}

void ProjectDaemon::end_work(const StopRequest& request, std::function<void()> done) {
  const auto left = std::make_shared<int>(2);
  const auto one_is_done = [left, done = std::move(done)] {
    if (--*left == 0) done();
  };
  tasks_.end(request, one_is_done);
  bridge_.stop_all(one_is_done);
}

void ProjectDaemon::take_signal(int signal) {
  if (signal == SIGHUP) return void(reload());
  stop(signal == SIGTERM ? "SIGTERM" : "SIGINT", {});
}

MetricLevels ProjectDaemon::metric_levels() const {
  const auto counts = tasks_.queue().counts();
  const auto count = [&counts](task::State state) {
    return static_cast<std::uint64_t>(counts.at(static_cast<std::size_t>(state)));
  };
  return {
      .queued = count(task::State::queued), .running = count(task::State::running), .clients = server_.client_count()};
}

DaemonStatus ProjectDaemon::status() const {
  std::string automation;
  for (const std::string& problem : automation_.problems()) automation += (automation.empty() ? "" : "; ") + problem;
  problems_.set("automation", automation);
  problems_.set("tls", tls_.problem());
  problems_.set("starts", tasks_.queue().shortage());
  if (tasks_.shared() != nullptr) problems_.set("database", tasks_.shared()->delay());
  DaemonStatus status{
      .pid = getpid(),
      .version = kVersion,
      .started_at = base::utc_text(started_at_),
      .uptime_seconds = std::chrono::floor<std::chrono::seconds>(loop_.now() - started_).count(),
      .health = problems_.empty() ? "healthy" : "degraded",
      .problems = problems_.list(),
      .subsystems = subsystems(),
  };
  if (context_.manager.is_there()) status.managed = true;
  status.startedBy = context_.started_by;
  if (tasks_.shared() != nullptr) status.worker = settings_.cluster.name;
  if (end_.has_begun()) status.stopping = true;
  if (const std::optional<LastEnd>& last = context_.last_end) {
    status.last_end = {.pid = last->pid, .how = last->how};
    if (!last->at.empty()) status.last_end->at = last->at;
  }
  return status;
}

Subsystems ProjectDaemon::subsystems() const {
  const task::Queue& queue = tasks_.queue();
  const auto count = [&queue](task::State state) { return queue.counts().at(static_cast<std::size_t>(state)); };
  return {.loop = {watch_.longest_turn().count()},
          .ipc = {.clients = server_.client_count(),
                  .byDoor = {.unix = server_.client_count() - http_.websocket_count() - tls_.server_count(),
                             .http = http_.connection_count(),
                             .tls = tls_.connection_count()}},
          .http = http_.url() ? std::optional(HttpStatus{*http_.url()}) : std::optional<HttpStatus>(),
          .tls = tls_.address() ? std::optional(TlsStatus{tls_.address()->text(), base::utc_text(tls_.expires())})
                                : std::optional<TlsStatus>(),
          .supervisor = {.running = count(task::State::running),
                         .queued = count(task::State::queued),
                         .maxRunning = queue.slots()},
          .store = {tasks_.store().is_healthy()},
          .automation = {.enabled = automation_.enabled(), .ruleCount = automation_.rule_count()},
          .lsp = {bridge_.running()}};
}

}  // namespace duet::app
