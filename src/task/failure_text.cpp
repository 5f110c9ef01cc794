#include "task/failure_text.h"

#include <algorithm>

#include "duet/rpc/utf8.h"
#include "process/launch.h"

namespace duet::task {
namespace {

// A name of a program may be of any bytes, and the text may be cut inside of a character.
std::string for_people(std::string text) {
  std::ranges::replace(text, '\0', ' ');
  return rpc::valid_utf8(std::move(text));
}

}  // namespace

Failure failure_of(const Outcome& outcome) {
  if (outcome.timed_out) return {Reason::timeout, "its time limit was over"};
  if (outcome.out_of_memory) return {Reason::memory, "it needed more memory than its limit"};
  switch (outcome.kind) {
    case Outcome::Kind::exited:
      return {Reason::exit, "exited with code " + std::to_string(outcome.code)};
    case Outcome::Kind::signalled:
      return {Reason::signal, "ended by " + process::signal_name(outcome.signal)};
    case Outcome::Kind::not_started:
      return {Reason::spawn, for_people(outcome.problem)};
    case Outcome::Kind::lost:
      break;
  }
  return {Reason::lost,
          outcome.problem.empty() ? "its keeper was killed; nobody knows how it ended" : for_people(outcome.problem)};
}

Failure failure_by_stop() { return {Reason::signal, "ended when the daemon was stopped"}; }

}  // namespace duet::task
