#include "simulate/simulated_world.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "duet/base/lifetime.h"
#include "task/output.h"

namespace duet::simulate {

using task::Hindrance;
using task::RunId;

namespace {

constexpr std::chrono::milliseconds look_again{50};

class DiskRecord final : public task::KeptRecord {
 public:
  explicit DiskRecord(task::RunRecord record) : record_(std::move(record)) {}

  const task::RunRecord& get() const { return record_; }
  bool lock() override { return record_.lock(); }
  tl::expected<task::RunRecord::State, int> read() override { return record_.try_read(); }
  tl::expected<std::string, int> read_result() override { return record_.try_read_result(); }
  int write_gone() override { return record_.write_gone() ? 0 : errno; }

 private:
  task::RunRecord record_;
};

/// Looks for the processes of a run until none is left.
class TreePursuit final : public task::Pursuit {
 public:
  TreePursuit(transport::Loop& loop, Population& population, Process& daemon, task::Fingerprint fingerprint,
              std::chrono::milliseconds grace, std::function<void()> done)
      : loop_(loop),
        population_(population),
        daemon_(daemon),
        fingerprint_(std::move(fingerprint)),
        kill_at_(loop.now() + grace),
        done_(std::move(done)) {
    timer_ = loop_.after(std::chrono::milliseconds(0), [this] { look(); });
  }
  TreePursuit(const TreePursuit&) = delete;
  TreePursuit& operator=(const TreePursuit&) = delete;
  ~TreePursuit() override = default;

 private:
  void look() {
    const auto tree = fingerprint_.boot == population_.boot() ? population_.find_tree(fingerprint_.mark) : nullptr;
    if (!tree) return done_();
    if (!daemon_.dead) population_.signal(tree, loop_.now() >= kill_at_ ? SIGKILL : SIGTERM);
    timer_ = loop_.after(look_again, [this] { look(); });
  }

  transport::Loop& loop_;
  Population& population_;
  Process& daemon_;
  task::Fingerprint fingerprint_;
  base::TimePoint kill_at_;
  std::function<void()> done_;
  transport::Loop::Timer timer_;
};

}  // namespace

/// The daemon's end of a wire.
class SimulatedLine final : public task::KeeperLine {
 public:
  SimulatedLine(transport::Loop& loop, Population& population, Process& daemon, std::string contact)
      : loop_(loop), population_(population), daemon_(daemon), contact_(std::move(contact)) {
    wire_->wake_daemon = [this] { look_soon(); };
    if (SimulatedKeeper* keeper = population_.find_keeper(contact_)) {
      keeper->send(SimulatedKeeper::Letter(wire_));
    } else {
      wire_->keeper_gone = true;
    }
  }
  SimulatedLine(const SimulatedLine&) = delete;
  SimulatedLine& operator=(const SimulatedLine&) = delete;
  ~SimulatedLine() override {
    wire_->wake_daemon = {};
    wire_->daemon_gone = true;
    if (SimulatedKeeper* keeper = population_.find_keeper(contact_)) keeper->send(SimulatedKeeper::Farewell{wire_});
  }

  bool is_usable() const {
    const SimulatedKeeper* keeper = population_.find_keeper(contact_);
    return keeper != nullptr && keeper->is_idle() && !wire_->keeper_gone;
  }

  const std::string& contact() const override { return contact_; }

  bool listen(Listener* listener) override {
    listener_ = listener;
    if (listener != nullptr && (!wire_->to_daemon.empty() || wire_->keeper_gone)) look_soon();
    return true;
  }

  tl::expected<void, Hindrance> give(const task::Order& order, const task::KeptRecord& record) override {
    SimulatedKeeper* keeper = population_.find_keeper(contact_);
    if (daemon_.dead || keeper == nullptr) return tl::unexpected(Hindrance{EPIPE, "a keeper was killed"});
    const int descriptor =
        population_.machine().give(static_cast<const DiskRecord&>(record).get().get(), keeper->process());
    keeper->send(
        std::make_shared<SimulatedKeeper::Work>(SimulatedKeeper::Work{order, base::Fd(descriptor), loop_.now()}));
    return {};
  }

  void tell(const task::Message& message) override {
    if (daemon_.dead || wire_->keeper_gone) return;
    if (SimulatedKeeper* keeper = population_.find_keeper(contact_)) keeper->send(SimulatedKeeper::Letter(message));
  }

 private:
  void look_soon() {
    loop_.after(population_.latency(), lifetime_.bind([this] { look(); })).detach();
  }

  void look() {
    const auto is_there = lifetime_.watch();
    while (is_there() && listener_ != nullptr) {
      if (!wire_->to_daemon.empty()) {
        const task::Message message = wire_->to_daemon.front();
        wire_->to_daemon.pop_front();
        listener_->on_message(message);
      } else if (wire_->keeper_gone && !std::exchange(told_closed_, true)) {
        return listener_->on_closed();
      } else {
        return;
      }
    }
  }

  transport::Loop& loop_;
  Population& population_;
  Process& daemon_;
  std::string contact_;
  std::shared_ptr<Wire> wire_ = std::make_shared<Wire>();
  Listener* listener_ = nullptr;
  bool told_closed_ = false;
  base::Lifetime lifetime_;
};

SimulatedWorld::SimulatedWorld(transport::Loop& loop, Population& population, Process& daemon, int tasks)
    : loop_(loop), population_(population), daemon_(daemon), tasks_(tasks) {}

SimulatedWorld::~SimulatedWorld() = default;

task::KeeperWorld::Got<task::KeeperLine> SimulatedWorld::take_keeper() {
  std::erase_if(spares_, [](const auto& line) { return !line->is_usable(); });
  if (!spares_.empty()) {
    std::unique_ptr<task::KeeperLine> line = std::move(spares_.front());
    spares_.pop_front();
    return line;
  }
  if (population_.spawn_error != 0)
    return tl::unexpected(Hindrance{population_.spawn_error, "no keeper can be started"});
  const std::string contact = task::new_contact_name();
  const base::Fd socket(population_.machine().open_at(tasks_, contact.c_str(), O_CREAT | O_EXCL | O_RDWR));
  if (!socket) return tl::unexpected(Hindrance{errno, "no keeper can be started"});
  population_.add_keeper(contact);
  return std::make_unique<SimulatedLine>(loop_, population_, daemon_, contact);
}

void SimulatedWorld::put_back(std::unique_ptr<task::KeeperLine> line, std::optional<RunId> acknowledged) {
  if (acknowledged) {
    line->tell(
        {.kind = task::Message::Kind::acknowledged, .attempt = acknowledged->attempt, .task = acknowledged->task});
  }
  line->listen(nullptr);
  constexpr std::size_t most_spares = 4;
  if (spares_.size() < most_spares) spares_.emplace_back(static_cast<SimulatedLine*>(line.release()));
}

std::unique_ptr<task::KeeperLine> SimulatedWorld::meet(const std::string& contact) {
  if (population_.machine().trouble.out_of_descriptors || population_.find_keeper(contact) == nullptr) return nullptr;
  return std::make_unique<SimulatedLine>(loop_, population_, daemon_, contact);
}

void SimulatedWorld::remove_contact(const std::string& contact) { unlinkat(tasks_, contact.c_str(), 0); }

void SimulatedWorld::remove_contacts_except(const std::set<std::string>& contacts) {
  for (const std::string& name : task::names_in(tasks_)) {
    if (task::is_contact_name(name) && !contacts.contains(name)) remove_contact(name);
  }
}

task::KeeperWorld::Got<task::KeptRecord> SimulatedWorld::make_record(RunId run, const std::string& contact) {
  if (!daemon_.dead) population_.witness().ordered(run);
  try {
    return std::make_unique<DiskRecord>(task::RunRecord::create(tasks_, run, contact));
  } catch (const std::system_error& error) {
    return tl::unexpected(Hindrance{error.code().value(), error.what()});
  }
}

task::KeeperWorld::Got<task::KeptRecord> SimulatedWorld::open_record(RunId run) {
  task::RunRecord record = task::RunRecord::open(tasks_, run);
  if (!record) return tl::unexpected(Hindrance{errno, "the record of a run"});
  return std::make_unique<DiskRecord>(std::move(record));
}

void SimulatedWorld::remove_record(RunId run) {
  const task::RunRecord record = task::RunRecord::open(tasks_, run);
  if (record && !record.read_extent()) unlinkat(tasks_, task::record_name(run).c_str(), 0);
}

void SimulatedWorld::remove_output(RunId run) { task::remove_output(tasks_, run); }

std::vector<RunId> SimulatedWorld::recorded_runs() { return task::recorded_runs(tasks_); }

std::vector<RunId> SimulatedWorld::recorded_outputs() { return task::recorded_outputs(tasks_); }

std::unique_ptr<task::Pursuit> SimulatedWorld::end_leftovers(const task::Fingerprint& fingerprint,
                                                             std::chrono::milliseconds grace,
                                                             std::function<void()> done) {
  return std::make_unique<TreePursuit>(loop_, population_, daemon_, fingerprint, grace, std::move(done));
}

void SimulatedWorld::wake_keeper(const task::Fingerprint& fingerprint) {
  if (daemon_.dead || fingerprint.boot != population_.boot()) return;
  for (SimulatedKeeper* keeper : population_.keepers()) {
    if (keeper->pid() == fingerprint.keeper) keeper->suspend(false);
  }
}

std::string SimulatedWorld::random_mark() { return task::random_mark(); }

}  // namespace duet::simulate
