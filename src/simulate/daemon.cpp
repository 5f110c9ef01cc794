#include "simulate/daemon.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <limits>
#include <utility>

#include "task/run_record.h"
#include "task/store_folder.h"

namespace duet::simulate {

Daemon::Daemon(Population& population, Process& process, task::TaskSettings settings,
               const std::vector<automation::Rule>& rules, const Ears& ears)
    : loop_(population.machine().clock()), root_(population.machine().open_root()) {
  mkdirat(root_.get(), "tasks", 0700);
  tasks_.reset(base::check_call(openat(root_.get(), "tasks", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "tasks"));
  store_ = std::make_unique<task::Store>(
      loop_, std::make_unique<task::StoreFolder>(root_.get()),
      [this](const task::Store::Health& health) {
        if (health.problem.empty() && supervisor_) supervisor_->store_recovered();
      },
      task::Committer::Options{.may_use_thread = false});
  journal_ = std::make_unique<task::Journal>(*store_);
  ears.opened(journal_->epoch(), journal_->oldest());
  const auto hear = [this, ears](const task::Event& event) {
    std::optional<task::Task> task;
    if (event.kind == "taskQueued") {
      if (auto found = store_->read([&](task::StoreReader& reader) { return reader.find(event.task); })) task = *found;
    }
    ears.event(event, task);
  };
  for (std::uint64_t seq = journal_->oldest(); seq < journal_->next(); ++seq) hear(journal_->at(seq));
  journal_->add_reader(hear);
  journal_->add_reader([this](const task::Event& event) { supervisor_->take(event); });
  journal_->add_reader([this](const task::Event& event) { automation_->take(event); });
  supervisor_ = std::make_unique<task::Supervisor>(
      loop_, log_, *store_, std::move(settings),
      task::Surroundings{.tasks = tasks_.get(),
                         .project = [] { return std::string("/project"); },
                         .environment = {{"PATH", "/bin"}},
                         .seed = static_cast<std::uint32_t>(population.machine().chance().next())},
      task::OutputFollower::Audience{.wants = [](task::TaskId) { return false; },
                                     .tell = [](task::TaskId, std::uint64_t, std::string_view) {}});
  world_ = std::make_unique<SimulatedWorld>(loop_, population, process, tasks_.get());
  keepers_ =
      std::make_unique<task::Keepers>(loop_, log_, *world_, task::KeeperSettings{}, supervisor_->keeper_events());
  automation_ = std::make_unique<automation::Engine>(loop_, log_, root_.get(), *store_, *supervisor_);
  supervisor_->begin(*keepers_, task::recorded_runs(tasks_.get()));
  keepers_->end_strays();
  begin_automation(rules);
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
