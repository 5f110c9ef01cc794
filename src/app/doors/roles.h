#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/log.h"
#include "duet/peer/conversation.h"
#include "duet/peer/methods.h"
#include "duet/rpc/error.h"

namespace duet::app {

/// What somebody may do who came in through a network door. Each role may do what the one before it may, too. The
/// entries of the methods say what they need; what says nothing needs `own`.
namespace role {
inline constexpr std::string_view observe = "observe";  ///< sees everything, prompts and output included
inline constexpr std::string_view operate = "operate";  ///< steers what owners have set up, cannot say what runs
inline constexpr std::string_view own = "own";
inline constexpr std::array all{observe, operate, own};
/// No role, but what a method needs that nobody may call through a network door.
inline constexpr std::string_view nobody_far = "unix";
}  // namespace role

bool is_role(std::string_view name);
bool may(std::string_view role, std::string_view needs);

/// He came through the Unix socket, or with that role.
bool is_owner(const peer::Peer& peer);

/// Who asks, as logs and tasks keep it: `unix`, `http:NAME` or `tls:NAME`.
std::string asked_by(const peer::Peer& peer);

/// Refuses what a role may not call. Of what it lets through, and what changes something, it logs the method and who
/// asked, before it is done: nobody gets around that by going away.
peer::Guard door_guard(base::Log& log);

}  // namespace duet::app
