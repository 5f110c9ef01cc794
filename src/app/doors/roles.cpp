#include "app/doors/roles.h"

#include <algorithm>
#include <cstddef>

#include "app/words/role_names.h"

namespace duet::app {
namespace {

static_assert(role::all == role_names);

std::size_t rank_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(role::all, name) - role::all.begin());
}

bool changes_something(const peer::Method& method) { return !method.read_only && method.needs != role::observe; }

}  // namespace

bool is_role(std::string_view name) { return rank_of(name) < role::all.size(); }

bool may(std::string_view role, std::string_view needs) {
  return is_role(role) && is_role(needs) && rank_of(role) >= rank_of(needs);
}

bool is_owner(const peer::Peer& peer) { return !peer.admission || peer.admission->role == role::own; }

std::string asked_by(const peer::Peer& peer) {
  if (!peer.admission) return "unix";
  return peer.admission->door + ':' + peer.admission->name;
}

peer::Guard door_guard(base::Log& log) {
  return [&log](const peer::Method& method, const peer::Peer& peer) -> std::optional<rpc::Error> {
    const std::string& role = peer.admission->role;
    if (!may(role, method.needs)) return rpc::not_permitted(method.name, method.needs, role);
    if (changes_something(method)) log.info("called", {{"method", method.name}, {"by", asked_by(peer)}});
    return std::nullopt;
  };
}

}  // namespace duet::app
