#include "simulate/daemon.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <limits>
#include <utility>

#include "task/output.h"
#include "task/output_file.h"
#include "task/run_record.h"
#include "task/store_folder.h"

namespace duet::simulate {

Daemon::Daemon(Population& population, Process& process, task::TaskSettings settings,
               const std::vector<automation::Rule>& rules, const Limits& limits, const Ears& ears)
    : population_(population),
      process_(process),
      loop_(population.machine().clock()),
      root_(population.machine().open_root()),
      server_(loop_, log_, server_events()) {
  mkdirat(root_.get(), "tasks", 0700);
  tasks_.reset(base::check_call(openat(root_.get(), "tasks", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "tasks"));
  store_ = std::make_unique<task::Store>(
      loop_, std::make_unique<task::StoreFolder>(root_.get()),
      [this](const task::Store::Health& health) {
        if (health.problem.empty() && supervisor_) supervisor_->store_recovered();
      },
      task::Committer::Options{.may_use_thread = false});
  open_journal(limits, ears);
  supervisor_ = std::make_unique<task::Supervisor>(
      loop_, log_, *store_, std::move(settings),
      task::Context{.tasks = tasks_.get(),
                    .project = [] { return std::string("/project"); },
                    .environment = {{"PATH", "/bin"}},
                    .seed = static_cast<std::uint32_t>(population.machine().chance().next())},
      task::OutputFollower::Audience{
          .wants = [this](task::TaskId id) { return hub_->wants_output(task::to_text(id)); },
          .tell =
              [this](task::TaskId id, std::uint64_t offset, task::Stream stream, std::string_view text) {
                hub_->emit_output(task::to_text(id), offset, text, task::name_of(stream));
              }});
  world_ = std::make_unique<SimulatedWorld>(loop_, population, process, tasks_.get());
  keepers_ =
      std::make_unique<task::Keepers>(loop_, log_, *world_, task::KeeperSettings{}, supervisor_->keeper_events());
  automation_ = std::make_unique<automation::Engine>(loop_, log_, root_.get(), *store_, *supervisor_);
  supervisor_->begin(*keepers_, task::recorded_runs(tasks_.get()));
  keepers_->end_strays();
  begin_automation(rules);
  add_methods();
}

peer::ServerEvents Daemon::server_events() {
  return {.on_opened = [this](peer::Connection& client) { hub_->client_opened(client); },
          .on_load_changed = [this](peer::Connection& client) { hub_->client_load_changed(client); },
          .on_forgotten = [this](std::uint64_t client) { hub_->client_forgotten(client); }};
}

// Whoever hears of it all hears first what an earlier daemon did not live to tell.
void Daemon::open_journal(const Limits& limits, const Ears& ears) {
  journal_ = std::make_unique<task::Journal>(*store_, limits.journal);
  hub_ = std::make_unique<app::EventHub>(loop_, *journal_, limits.events);
  const std::uint64_t known = ears.opened(*journal_);
  std::vector<task::Event> untold;
  const auto read = store_->read([&](task::StoreReader& reader) {
    reader.events_after(known - 1, journal_->next(), [&](task::Event event) { untold.push_back(std::move(event)); });
  });
  if (!read) throw rpc::Error(read.error());
  for (const task::Event& event : untold) hear(ears, event);
  journal_->add_reader([this, ears](const task::Event& event) { hear(ears, event); });
  journal_->add_reader([this](const task::Event&) { hub_->take_news(); });
  journal_->add_reader([this](const task::Event& event) { supervisor_->take(event); });
  journal_->add_reader([this](const task::Event& event) { automation_->take(event); });
}

void Daemon::hear(const Ears& ears, const task::Event& event) {
  std::optional<task::Task> task;
  if (event.kind == "taskQueued") {
    if (auto found = store_->read([&](task::StoreReader& reader) { return reader.find(event.task); })) task = *found;
  }
  ears.event(event, task);
}

// What is asked after the slow one is done at once, and answered after it.
void Daemon::add_methods() {
  hub_->add_subscribe_method(server_.methods(), [this] { supervisor_->output_audience_changed(); });
  server_.methods()
      .add(slow_method,
           [this](peer::Reply<void> reply) {
             loop_.after(std::chrono::seconds(1), [kept = shared(std::move(reply))] { kept->ok(); }).detach();
           })
      .pipelined();
}

void Daemon::admit(const std::shared_ptr<ClientWire>& wire) {
  server_.admit(std::make_unique<ClientLine>(loop_, population_, process_, wire), {});
}

void Daemon::begin_automation(const std::vector<automation::Rule>& rules) {
  configure(rules);
  std::vector<task::Task> running;
  for (const task::TaskId id : supervisor_->running()) {
    if (auto task = supervisor_->find(id)) running.push_back(std::move(*task));
  }
  automation_->begin(running);
}

void Daemon::configure(const std::vector<automation::Rule>& rules) {
  automation_->configure(automation::Engine::prepare(rules, {}).value());
}

Daemon::~Daemon() = default;

std::uint64_t Daemon::count_events() {
  std::uint64_t count = 0;
  const auto read = store_->read([&](task::StoreReader& reader) {
    reader.newest_events([&](const task::Event& /*event*/) { return ++count > 0; });
  });
  return count;
}

std::vector<RunOutput> Daemon::outputs_of(const task::Task& task) {
  std::vector<RunOutput> outputs;
  for (task::RunId run{task.id, 1}; run.attempt <= task.progress.attempts; ++run.attempt) {
    outputs.push_back({.both = task::read_output(tasks_.get(), run, 0, task::max_output),
                       .err = task::read_stream(tasks_.get(), run, task::Stream::err, 0, task::max_output)});
  }
  return outputs;
}

std::vector<task::Task> Daemon::all_tasks() {
  std::vector<task::Task> all;
  const auto read = store_->read([&](task::StoreReader& tasks) {
    tasks.list({}, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int32_t>::max(),
               [&](const task::Task& task) {
                 all.push_back(task);
                 return true;
               });
  });
  return all;
}

}  // namespace duet::simulate
