#include "app/daemon/loop_watch.h"

#include <algorithm>
#include <bit>
#include <new>
#include <typeinfo>
#include <utility>

namespace duet::app {
namespace {

constexpr std::uint64_t all_logged = 10;

// A callback that throws in every turn must not fill the disk.
bool is_logged(std::uint64_t number) { return number <= all_logged || std::has_single_bit(number); }

// Of what is being handled.
std::string current_fault() {
  try {
    throw;
  } catch (const std::exception& fault) {
    return base::to_text({.callback = &typeid(fault)}) + ": " + fault.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

bool is_memory_refused() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

LoopWatch::LoopWatch(transport::Loop& loop, base::Log& log, Events events, Limits limits)
    : loop_(loop), log_(log), events_(std::move(events)), limits_(limits) {
  loop_.set_overseer(this);
}

LoopWatch::~LoopWatch() { loop_.set_overseer(nullptr); }

void LoopWatch::on_defect(const base::Activity& where) {
  ++defects_;
  const bool no_memory = is_memory_refused();
  if (no_memory) count_refusal();
  try {
    tell(where);
  } catch (const std::bad_alloc&) {
    if (!no_memory) count_refusal();
  }
}

void LoopWatch::tell(const base::Activity& where) {
  const std::string place = base::to_text(where);
  const std::string fault = current_fault();
  if (is_logged(defects_)) {
    log_.error("a callback of the loop failed, which is a defect",
               {{"in", place}, {"what", fault}, {"count", defects_}});
  }
  events_.on_problem("a defect of the program, " + std::to_string(defects_) + (defects_ == 1 ? " time" : " times") +
                     " since the start, the last one in " + place + ": " + fault);
}

void LoopWatch::count_refusal() {
  if (loop_.now() - first_refusal_ > limits_.memory_patience) refusals_ = 0;
  if (refusals_++ == 0) first_refusal_ = loop_.now();
  if (refusals_ >= limits_.memory_refusals) throw;
}

void LoopWatch::on_turn(base::Duration took, const base::Activity& longest) {
  const base::TimePoint ended = loop_.now();
  if (ended >= slice_end_) begin_slice(ended);
  if (took > slice_->longest) slice_->longest = took;
  if (events_.on_turn) events_.on_turn(ended, took);
  if (took < limits_.slow) return;
  log_.warn("a turn of the loop took long",
            {{"ms", std::chrono::round<std::chrono::milliseconds>(took).count()}, {"in", base::to_text(longest)}});
}

void LoopWatch::begin_slice(base::TimePoint now) {
  const std::int64_t number = slice_at(now);
  slice_ = &slices_.at(static_cast<std::size_t>(number) % slices_.size());
  *slice_ = {.number = number};
  slice_end_ = base::TimePoint(slice * (number + 1));
}

std::chrono::milliseconds LoopWatch::longest_turn() const {
  base::Duration longest{};
  const std::int64_t number = slice_at(loop_.now());
  for (const Slice& each : slices_) {
    if (number - each.number < static_cast<std::int64_t>(slices_.size())) longest = std::max(longest, each.longest);
  }
  return std::chrono::ceil<std::chrono::milliseconds>(longest);
}

}  // namespace duet::app
