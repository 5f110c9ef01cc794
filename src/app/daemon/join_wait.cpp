#include "app/daemon/join_wait.h"

#include <algorithm>
#include <chrono>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration join_patience = 12s;
constexpr base::Duration rejoin_patience = 5s;  // of one that has runs to look after meanwhile
constexpr base::Duration search_patience = 3s;  // behind a server that was refused, among several

}  // namespace

JoinWait::JoinWait(base::TimePoint now, Options options)
    : options_(options), deadline_(now + (options.was_joined ? rejoin_patience : join_patience)) {}

std::optional<JoinWait::End> JoinWait::look(base::TimePoint now, Seen seen) {
  if (seen.joined) return End::joined;
  if (seen.unwritten) return End::unwritten;
  if (!seen.refused) refused_until_.reset();
  if (seen.refused && !refused_until_) {
    refused_until_ = now + (options_.has_several_hosts ? search_patience : base::Duration::zero());
  }
  if (now < until()) return std::nullopt;
  if (seen.refused) return End::refused;
  return options_.was_joined ? End::goes_on_without : End::no_answer;
}

base::TimePoint JoinWait::until() const { return refused_until_ ? std::min(deadline_, *refused_until_) : deadline_; }

}  // namespace duet::app
