#include "task/keeper.h"

#include <unistd.h>

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "task/kept_run.h"
#include "task/run_record.h"

namespace duet::task {
namespace {

KeeperEvents no_events() {
  return {.started = [](RunId, const Started&) {},
          .output = [](RunId, std::uint64_t) {},
          .terminated = [](RunId) {},
          .ended = [](RunId, const Outcome&) {},
          .gone = [](RunId) {},
          .never_began = [](RunId) {}};
}

}  // namespace

Keepers::Keepers(transport::Loop& loop, base::Log& log, KeeperSettings settings, KeeperEvents events)
    : loop_(loop),
      log_(log),
      settings_(settings),
      events_(std::move(events)),
      silence_(no_events()),
      nursery_(loop, settings.tasks, settings.executable) {}

Keepers::~Keepers() = default;

void Keepers::start(const Assignment& assignment) { add(assignment.run, events_).start(assignment); }

void Keepers::adopt(RunId run) { add(run, events_).adopt(); }

void Keepers::end_strays() {
  std::set<std::string> contacts;
  for (const RunId run : recorded_runs(settings_.tasks)) {
    const RunRecord record = RunRecord::open(settings_.tasks, run);
    if (!record) continue;
    const RunRecord::State state = record.read();
    contacts.insert(state.contact);
    if (find(run) != nullptr || (state.gone && record.read_extent())) continue;
    if (!state.gone) log_.warn("A run that nobody knows is ended", {{"task", run.task}, {"attempt", run.attempt}});
    KeptRun& stray = add(run, silence_);
    stray.cancel();
    stray.settle();
    stray.adopt();
  }
  for (const std::string& name : names_in(settings_.tasks)) {
    if (is_contact_name(name) && !contacts.contains(name)) unlinkat(settings_.tasks, name.c_str(), 0);
  }
}

void Keepers::cancel(RunId run) {
  if (KeptRun* kept = find(run)) kept->cancel();
}

void Keepers::follow(RunId run, std::uint64_t offset) {
  if (KeptRun* kept = find(run)) kept->follow(offset);
}

void Keepers::settle(RunId run) {
  if (KeptRun* kept = find(run)) return kept->settle();
  if (auto left = unsettled_.extract(run)) nursery_.put_back(std::move(left.mapped()), run);
  remove_record(settings_.tasks, run);
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
  KeeperLink link = kept.mapped()->take_link();
  if (!kept.mapped()->is_settled()) {
    if (link) unsettled_.emplace(run, std::move(link));
    return;
  }
  if (link) nursery_.put_back(std::move(link));
  remove_record(settings_.tasks, run);
}

}  // namespace duet::task
