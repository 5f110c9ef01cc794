#include "simulate/population.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace duet::simulate {
namespace {

using std::chrono::milliseconds;

std::string name_of(task::RunId run) { return std::to_string(run.task) + '.' + std::to_string(run.attempt); }

}  // namespace

bool Tree::alive() const {
  return std::ranges::any_of(members, [](const Member& member) { return member.alive; });
}

// ---- the population ----

Population::Population(Machine& machine, Agenda& agenda, Trace& trace, Witness witness, std::string home)
    : machine_(machine),
      agenda_(agenda),
      trace_(trace),
      witness_(std::move(witness)),
      home_(std::move(home)),
      chance_(machine.chance().fork()) {}

int Population::open_home() {
  const int root = machine_.open_root();
  if (home_.empty()) return root;
  const base::Fd opened(root);
  machine_.make_folder_at(opened.get(), home_.c_str());
  return machine_.open_at(opened.get(), home_.c_str(), O_RDONLY | O_DIRECTORY);
}

base::Duration Population::latency() {
  return chance_.one_in(10) ? milliseconds(chance_.below(200)) : std::chrono::microseconds(chance_.below(2000));
}

SimulatedKeeper& Population::add_keeper(std::string contact) {
  std::erase_if(keepers_, [](const auto& keeper) { return !keeper->alive(); });
  keepers_.push_back(std::make_unique<SimulatedKeeper>(*this, std::move(contact)));
  return *keepers_.back();
}

SimulatedKeeper* Population::find_keeper(std::string_view contact) {
  for (const auto& keeper : keepers_) {
    if (keeper->alive() && keeper->contact() == contact) return keeper.get();
  }
  return nullptr;
}

std::vector<SimulatedKeeper*> Population::keepers() {
  std::vector<SimulatedKeeper*> living;
  for (const auto& keeper : keepers_) {
    if (keeper->alive()) living.push_back(keeper.get());
  }
  return living;
}

std::shared_ptr<Tree> Population::find_tree(std::string_view mark) {
  for (const auto& tree : trees_) {
    if (tree->mark == mark && tree->alive()) return tree;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Tree>> Population::living_trees() const {
  std::vector<std::shared_ptr<Tree>> living;
  for (const auto& tree : trees_) {
    if (tree->alive()) living.push_back(tree);
  }
  return living;
}

std::shared_ptr<Tree> Population::plant(const task::Order& order, base::TimePoint ordered, Play play) {
  const task::RunId run = order.assignment.run;
  std::erase_if(trees_, [](const auto& tree) { return !tree->alive(); });
  auto tree = std::make_shared<Tree>(
      Tree{.run = run, .mark = order.mark, .ordered = ordered, .play = std::move(play), .members = {}});
  if (const auto& claim = order.assignment.claim) {
    tree->fence = claim->fence;
    tree->leased = claim->leased;
  }
  tree->members.push_back({++last_pid_, tree->play.main.ignores_term});
  for (const Play::Part& part : tree->play.others) tree->members.push_back({++last_pid_, part.ignores_term});
  trees_.push_back(tree);
  trace_.note("begins " + name_of(run));
  witness_.began(*tree);
  end_member(tree, 0, tree->play.code << 8, tree->play.main.life);
  for (std::size_t i = 0; i < tree->play.others.size(); ++i) end_member(tree, i + 1, 0, tree->play.others[i].life);
  return tree;
}

void Population::end_member(const std::shared_ptr<Tree>& tree, std::size_t member, int status, base::Duration after) {
  agenda_.after(after, [this, tree, member, status] {
    if (!std::exchange(tree->members[member].alive, false)) return;
    if (member == 0) {
      trace_.note("main of " + name_of(tree->run) + " ends with " + std::to_string(status));
      witness_.main_ended(*tree, status, static_cast<bool>(tree->on_end));
    }
    if (!tree->alive()) witness_.gone(*tree);
    if (tree->on_end) tree->on_end(member, status);
  });
}

void Population::signal(const std::shared_ptr<Tree>& tree, int signal) {
  for (std::size_t i = 0; i < tree->members.size(); ++i) {
    Tree::Member& member = tree->members[i];
    if (!member.alive || (signal == SIGTERM && (member.ignores_term || std::exchange(member.signalled, true))))
      continue;
    end_member(tree, i, signal, signal == SIGKILL ? milliseconds(chance_.below(3)) : milliseconds(chance_.below(300)));
  }
}

void Population::kill_main(const std::shared_ptr<Tree>& tree) { end_member(tree, 0, SIGKILL, {}); }

void Population::kill_all() {
  for (SimulatedKeeper* keeper : keepers()) keeper->kill();
  for (const auto& tree : living_trees()) {
    for (std::size_t i = 0; i < tree->members.size(); ++i) end_member(tree, i, SIGKILL, {});
  }
}

void Population::cut_power() {
  for (const auto& tree : trees_) {
    tree->on_end = {};
    for (Tree::Member& member : tree->members) member.alive = false;
  }
  trees_.clear();
  keepers_.clear();
}

// ---- a keeper ----

SimulatedKeeper::SimulatedKeeper(Population& population, std::string contact)
    : population_(population), process_{"keeper"}, contact_(std::move(contact)), pid_(population.next_pid()) {
  const Machine::As as(population_.machine(), process_);
  Machine& machine = population_.machine();
  const base::Fd home(population_.open_home());
  tasks_.reset(machine.open_at(home.get(), "tasks", O_RDONLY | O_DIRECTORY));
}

void SimulatedKeeper::send(Letter letter) {
  letters_.push_back(std::move(letter));
  population_.agenda().after(population_.latency(), lifetime_.bind([this] { read_letters(); }));
}

void SimulatedKeeper::read_letters() {
  if (!alive_ || suspended_) return;
  const Machine::As as(population_.machine(), process_);
  while (alive_ && !letters_.empty() && take(letters_.front())) {
    if (!letters_.empty()) letters_.pop_front();
    acknowledge();
  }
}

// False: it is not its turn yet.
bool SimulatedKeeper::take(Letter& letter) {
  if (auto* message = std::get_if<task::Message>(&letter)) {
    if (core_ && !core_->is_finished()) core_->heard(*message);
  } else if (auto* call = std::get_if<Call>(&letter)) {
    drop_wire();
    wire_ = *call;
    if (core_) core_->contact_met();
  } else if (auto* farewell = std::get_if<Farewell>(&letter)) {
    if (farewell->wire != wire_) return true;
    wire_.reset();
    if (!core_) {
      end();
    } else {
      core_->contact_lost();
    }
  } else {
    if (core_) return false;
    begin(*std::get<std::shared_ptr<Work>>(letter));
  }
  return true;
}

void SimulatedKeeper::begin(Work& work) {
  order_.emplace(std::move(work.order));
  ordered_ = work.given;
  record_ = task::RunRecord(std::move(work.record));
  output_.emplace(tasks_.get(), order_->assignment.run, record_);
  core_.emplace(*order_, static_cast<KeeperHands&>(*this), population_.machine().clock(), wire_ != nullptr);
  const bool has_begun = core_->begin();
  if (process_.dead) return;
  if (!has_begun) return end();
  start();
}

void SimulatedKeeper::start() {
  const task::Assignment& assignment = order_->assignment;
  const std::string prompt = assignment.input ? *assignment.input : assignment.arguments.back();
  Play play = play_of(prompt, assignment.run.attempt);
  if (population_.spawn_error != 0) return core_->not_started(population_.spawn_error, "it cannot be started now");
  if (!play.can_start) return core_->not_started(ENOENT, "no such program");
  tree_ = population_.plant(*order_, ordered_, std::move(play));
  tree_->on_end = [this](std::size_t member, int status) { member_ended(member, status); };
  const task::Started started{.pid = tree_->members[0].pid, .at = population_.machine().clock().utc()};
  core_->started(started);
  for (const Play::Line& line : tree_->play.output) {
    population_.agenda().after(line.at, lifetime_.bind([this, tree = tree_, text = line.text, stream = line.stream] {
      if (!tree->members[0].alive) return;
      when_awake([this, tree, text, stream] {
        if (tree != tree_) return;
        population_.trace().note(name_of(tree->run) + " writes " + std::to_string(text.size()) + " bytes");
        population_.witness().wrote(tree->run, text, stream);
        core_->took_output(text, stream == task::Stream::out);
      });
    }));
  }
}

void SimulatedKeeper::member_ended(std::size_t member, int status) {
  when_awake([this, member, status] {
    if (!core_ || !tree_) return;
    if (member == 0) core_->main_ended(status, tree_->play.used);
    core_->reaped(!tree_->alive());
  });
}

void SimulatedKeeper::look_at_time() {
  when_awake([] {});
}

void SimulatedKeeper::when_awake(const std::function<void()>& deed) {
  if (!alive_) return;
  if (suspended_) return delayed_.push_back(deed);
  const Machine::As as(population_.machine(), process_);
  deed();
  acknowledge();
}

// After whatever it did: when it is to look again, or whether it has done.
void SimulatedKeeper::acknowledge() {
  if (alive_ && process_.dead) return kill();
  if (!alive_ || !core_) return;
  core_->time_passed();
  if (process_.dead) return kill();
  if (core_->is_finished()) {
    const bool goes_on = core_->leave();
    if (process_.dead) return kill();
    core_.reset();
    output_.reset();
    record_ = {};
    tree_.reset();
    if (!goes_on || !wire_) return end();
    return send(Letter(task::Message{}));  // so that what waits is read
  }
  const auto deadline = core_->deadline();
  if (!deadline) return;
  const base::TimePoint now = population_.machine().clock().now();
  const base::Duration wait = std::max(*deadline - now, base::Duration::zero());
  population_.agenda().after(wait, lifetime_.bind([this] { look_at_time(); }));
}

void SimulatedKeeper::end() {
  alive_ = false;
  population_.machine().remove_at(tasks_.get(), contact_.c_str());
  drop_everything();
}

void SimulatedKeeper::kill() {
  population_.trace().note("keeper killed" + (tree_ ? ", of " + name_of(tree_->run) : ""));
  if (const auto of = run()) population_.witness().keeper_died(*of, process_.dead);
  alive_ = false;
  process_.dead = true;
  if (tree_) tree_->on_end = {};
  if (tree_ && tree_->leased) population_.kill_main(tree_);
  drop_everything();
}

void SimulatedKeeper::suspend(bool suspended) {
  if (suspended_ == suspended) return;
  suspended_ = suspended;
  population_.trace().note(std::string("keeper ") + (suspended ? "suspended" : "woken") +
                           (tree_ ? ", of " + name_of(tree_->run) : ""));
  if (suspended) return;
  // Of all that has happened meanwhile it hears at once, and only then looks at the clock.
  when_awake([this] {
    for (const auto& deed : std::exchange(delayed_, {})) {
      if (!process_.dead) deed();
    }
  });
  read_letters();
}

void SimulatedKeeper::drop_everything() {
  drop_wire();
  for (Letter& letter : std::exchange(letters_, {})) {
    if (auto* call = std::get_if<Call>(&letter)) hang_up(**call);
  }
  core_.reset();
  output_.reset();
  record_ = {};
  population_.machine().end(process_);
}

void SimulatedKeeper::drop_wire() {
  if (wire_) hang_up(*wire_);
  wire_.reset();
}

void SimulatedKeeper::hang_up(Wire& wire) {
  wire.keeper_gone = true;
  if (wire.wake_daemon) wire.wake_daemon();
}

int SimulatedKeeper::write_began(task::RunId run, const std::string& mark) {
  const task::Fingerprint fingerprint{.mark = mark, .boot = population_.boot(), .keeper = pid_};
  return record_.write_began(run, fingerprint, order_->assignment.claim) ? 0 : errno;
}
int SimulatedKeeper::write_started(const task::Started& started) {
  return record_.write_started(started, 1) ? 0 : errno;
}
int SimulatedKeeper::write_outcome(const task::Outcome& outcome) { return record_.write_outcome(outcome) ? 0 : errno; }
int SimulatedKeeper::write_gone() { return record_.write_gone() ? 0 : errno; }
int SimulatedKeeper::sync_record() { return record_.sync(tasks_.get()) ? 0 : errno; }
void SimulatedKeeper::append_output(std::string_view bytes, task::Stream stream) { output_->append(bytes, stream); }
int SimulatedKeeper::sync_output() {
  const int error = output_->sync();
  if (error != 0) population_.witness().output_unsynced(order_->assignment.run);
  return error;
}
std::uint64_t SimulatedKeeper::output_total() const { return output_->total(); }
void SimulatedKeeper::signal_tree(int signal) {
  if (tree_ && !process_.dead) population_.signal(tree_, signal);
}

task::LeaseLeft SimulatedKeeper::lease_left() { return population_.lease_left(); }

bool SimulatedKeeper::send(const task::Message& message) {
  if (process_.dead) return true;  // it does not live to send it, nor to see that
  if (!wire_ || wire_->daemon_gone) {
    wire_.reset();
    return false;
  }
  wire_->to_daemon.push_back(message);
  if (wire_->wake_daemon) wire_->wake_daemon();
  return true;
}

}  // namespace duet::simulate
