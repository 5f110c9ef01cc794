#include "task/keeper.h"

#include <cerrno>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "task/kept_run.h"

namespace duet::task {
namespace {

KeeperEvents no_events() {
  return {.started = [](RunId, const Started&) {},
          .output = [](RunId, std::uint64_t) {},
          .terminated = [](RunId) {},
          .ended = [](RunId, const Outcome&) {},
          .gone = [](RunId) {},
          .never_began = [](RunId, const std::string&) {}};
}

}  // namespace

Keepers::Keepers(transport::Loop& loop, base::Log& log, KeeperWorld& world, KeeperSettings settings,
                 KeeperEvents events)
    : loop_(loop),
      log_(log),
      world_(world),
      settings_(std::move(settings)),
      events_(std::move(events)),
      silence_(no_events()) {}

Keepers::~Keepers() = default;

void Keepers::start(const Assignment& assignment) {
  const RunId run = assignment.run;
  if (find(run) == nullptr) return add(run, events_).start(assignment);
  log_.warn("A run waits until a stray of its number is gone", {{"task", run.task}, {"attempt", run.attempt}});
  loop_.defer(lifetime_.bind(
      [this, run] { events_.never_began(run, "what is left of another run of its number is being ended"); }));
}

void Keepers::adopt(RunId run) { add(run, events_).adopt(); }

void Keepers::end_strays() {
  std::set<std::string> contacts;
  bool all_read = true;
  for (const RunId run : world_.recorded_runs()) {
    const auto record = world_.open_record(run);
    const auto state = record ? (*record)->read() : tl::unexpected(record.error().error);
    if (!state) all_read = all_read && state.error() == ENOENT;
    if (!state) continue;
    contacts.insert(state->contact);
    if (find(run) != nullptr || (state->gone && state->has_extent)) continue;
    if (!state->gone) log_.warn("A run that nobody knows is ended", {{"task", run.task}, {"attempt", run.attempt}});
    KeptRun& kept = add(run, silence_);
    kept.cancel();
    kept.acknowledge();
    kept.adopt();
  }
  if (all_read) world_.remove_contacts_except(contacts);  // else one of them may be the only way to a keeper
}

// The record leads to the processes of its run, until that is gone.
void Keepers::remove_output(RunId run) {
  const auto record = world_.open_record(run);
  if (!record && record.error().error != ENOENT) return;
  const auto state = record ? (*record)->read() : RunRecord::State{};
  if (!state) return;
  const bool may_have_processes = state->began || (record && !(*record)->lock());
  if (state->gone || !may_have_processes) world_.remove_output(run);
}

void Keepers::cancel(RunId run) {
  if (KeptRun* kept = find(run)) kept->cancel();
}

void Keepers::follow(RunId run, std::uint64_t offset) {
  if (KeptRun* kept = find(run)) kept->follow(offset);
}

void Keepers::acknowledge(RunId run) {
  if (KeptRun* kept = find(run)) return kept->acknowledge();
  if (auto left = unacknowledged_.extract(run)) world_.put_back(std::move(left.mapped()), run);
  if (unwritten_.erase(run) == 0) world_.remove_record(run);
}

std::optional<RunId> Keepers::run_of_keeper(pid_t keeper) {
  for (const auto& [run, kept] : runs_) {
    if (kept->keeper() == keeper) return run;
  }
  return std::nullopt;
}

std::optional<LeftRun> Keepers::left_by(RunId run) {
  const auto record = world_.open_record(run);
  const auto state = record ? (*record)->read() : tl::unexpected(record.error().error);
  if (!state || !state->claim) return std::nullopt;
  return LeftRun{.claim = *state->claim, .gone = state->gone, .outcome = state->outcome};
}

KeptRun* Keepers::find(RunId run) const {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second.get();
}

KeptRun& Keepers::add(RunId run, const KeeperEvents& events) {
  const auto [place, added] = runs_.emplace(run, nullptr);
  if (!added) throw std::logic_error("a run that is already kept");
  place->second = std::make_unique<KeptRun>(*this, run, events);
  return *place->second;
}

void Keepers::forget(RunId run) {
  const auto kept = runs_.extract(run);
  std::unique_ptr<KeeperLine> line = kept.mapped()->take_line();
  const bool unwritten = kept.mapped()->is_unwritten();
  if (!kept.mapped()->is_acknowledged()) {
    if (line) unacknowledged_.emplace(run, std::move(line));
    if (unwritten) unwritten_.insert(run);
    return;
  }
  if (line) world_.put_back(std::move(line), std::nullopt);
  if (!unwritten) world_.remove_record(run);
}

}  // namespace duet::task
