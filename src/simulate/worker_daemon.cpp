#include "simulate/worker_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "task/run_record.h"
#include "task/store_folder.h"

namespace duet::simulate {
namespace {

constexpr std::chrono::seconds join_patience{12};
constexpr char memory_name[] = "cluster";

}  // namespace

WorkerDaemon::WorkerDaemon(Population& population, ModelServer& server, Process& process, WorkerHost& host,
                           const Ears& ears)
    : population_(population),
      process_(process),
      host_(host),
      loop_(population.machine().clock()),
      home_(population.open_home()),
      journal_(task::Journal::Limits{}) {
  mkdirat(home_.get(), "tasks", 0700);
  tasks_.reset(base::check_call(openat(home_.get(), "tasks", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "tasks"));
  store_ = std::make_unique<task::Store>(
      loop_, std::make_unique<task::StoreFolder>(home_.get()), [](const task::Store::Health&) {},
      task::Committer::Options{.may_use_thread = false});
  line_ = std::make_unique<ModelLine>(loop_, server, process, host.number, host.listens,
                                      population.machine().chance().fork());
  queue_ = std::make_unique<task::postgres::PostgresQueue>(
      loop_, log_, *line_, *store_, journal_, host.settings, host.cluster, queue_options(),
      task::postgres::PostgresQueue::Tells{
          .output = {.wants = [](task::TaskId) { return false; },
                     .tell = [](task::TaskId, std::uint64_t, task::Stream, std::string_view) {}},
          .problem = [](const std::string&) {},

          .journal_began_anew = ears.began_anew});
  journal_.add_reader(ears.event);
  journal_.add_reader([this](const task::Event& event) { queue_->take(event); });
  world_ = std::make_unique<SimulatedWorld>(loop_, population, process, tasks_.get());
  keepers_ = std::make_unique<task::Keepers>(loop_, log_, *world_, task::KeeperSettings{}, queue_->keeper_events());
  queue_->begin(*keepers_, task::recorded_runs(tasks_.get()));
  queue_->start();
  join_until_ = loop_.now() + join_patience;
}

WorkerDaemon::~WorkerDaemon() = default;

bool WorkerDaemon::look() {
  if (begun_) return true;
  if (!queue_->is_joined()) return loop_.now() < join_until_ && !queue_->is_refused();
  begun_ = true;
  keepers_->end_strays();
  queue_->want_events(true);
  return true;
}

task::postgres::PostgresQueue::Options WorkerDaemon::queue_options() {
  Random& chance = population_.machine().chance();
  return {.tasks = tasks_.get(),
          .project = [] { return std::string("/project"); },
          .environment = {{"PATH", "/bin"}},
          .seed = static_cast<std::uint32_t>(chance.next()),
          .place = "place of " + host_.name,
          .version = "1",
          .boottime = [this] { return loop_.now().time_since_epoch() + host_.boot_ahead; },
          .read_memory = [this] { return read_memory(); },
          .write_memory = [this](const std::string& text) { return write_memory(text); },
          .extend =
              [this](base::Duration deadline, base::Duration lease) {
                if (process_.dead) return;
                host_.lease = task::LeaseTerm{
                    task::BootTime(std::chrono::duration_cast<task::BootClock::duration>(deadline)), lease};
              }};
}

std::string WorkerDaemon::read_memory() const {
  const base::Fd file(openat(home_.get(), memory_name, O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = file ? pread(file.get(), text.data(), text.size(), 0) : 0;
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// Whole or not at all, as StateFolder does it.
bool WorkerDaemon::write_memory(const std::string& text) const {
  const base::Fd file(openat(home_.get(), "cluster.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return file && pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
         fsync(file.get()) == 0 && renameat(home_.get(), "cluster.new", home_.get(), memory_name) == 0 &&
         fsync(home_.get()) == 0;
}

}  // namespace duet::simulate
