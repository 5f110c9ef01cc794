#include "app/methods/door_methods.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <boost/describe/enum.hpp>

#include "app/doors/page.h"
#include "app/doors/roles.h"
#include "app/doors/secrets.h"
#include "app/methods/from_task.h"
#include "duet/base/utc_text.h"
#include "duet/peer/conversation.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json_write.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using peer::Request;

constexpr std::size_t bytes_of_code = 16;
constexpr std::chrono::seconds usual_life = std::chrono::hours(24 * 90);
constexpr double longest_life = 100.0 * 365 * 24 * 3600;

enum class Role : std::uint8_t { observe, operate, own };
BOOST_DESCRIBE_ENUM(Role, observe, operate, own)

struct SessionInfo {
  std::string door;
  std::string name;
  std::string role;
  std::optional<std::string> expiresAt;
  std::string project;
  std::string version;
  std::string assets;
};
BOOST_DESCRIBE_STRUCT(SessionInfo, (), (door, name, role, expiresAt, project, version, assets))

struct NewLogin {
  Role role = Role::own;
};
BOOST_DESCRIBE_STRUCT(NewLogin, (), (role))

struct LoginCreated {
  std::string code;
  std::string expiresAt;
  std::optional<std::string> url;
};
BOOST_DESCRIBE_STRUCT(LoginCreated, (), (code, expiresAt, url))

struct NewToken {
  std::string name;
  Role role = Role::own;
  std::optional<double> expiresSeconds;
};
BOOST_DESCRIBE_STRUCT(NewToken, (), (name, role, expiresSeconds))

struct TokenCreated {
  std::string token;
  std::string name;
  std::string role;
  std::optional<std::string> expiresAt;
};
BOOST_DESCRIBE_STRUCT(TokenCreated, (), (token, name, role, expiresAt))

struct TokenListed {
  std::string name;
  std::string role;
  bool browser;
  std::string createdAt;
  std::optional<std::string> usedAt;
  std::optional<std::string> expiresAt;
};
BOOST_DESCRIBE_STRUCT(TokenListed, (), (name, role, browser, createdAt, usedAt, expiresAt))

struct RevokeToken {
  std::optional<std::string> name;
};
BOOST_DESCRIBE_STRUCT(RevokeToken, (), (name))

struct TokensRevoked {
  std::vector<std::string> revoked;
};
BOOST_DESCRIBE_STRUCT(TokensRevoked, (), (revoked))

std::optional<std::string> text_of(const std::optional<base::UtcTime>& time) {
  return time ? std::optional(base::utc_text(*time)) : std::nullopt;
}

template <typename Value>
Value value_or_throw(tl::expected<Value, rpc::Error> result) {
  if (!result) throw rpc::Error(result.error());
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

// None: it never ends.
std::optional<base::UtcTime> end_of_life(std::optional<double> seconds, base::UtcTime now) {
  if (!seconds) return now + usual_life;
  if (*seconds == 0) return std::nullopt;
  if (!(*seconds > 0)) throw rpc::invalid_params("expiresSeconds", "number from 0 on", "number");
  const std::chrono::duration<double> life(std::min(*seconds, longest_life));
  return now + std::chrono::ceil<std::chrono::milliseconds>(life);
}

void add_session_info(peer::Methods& methods, const DoorActions& actions) {
  const auto handler = [actions](const Request& request) {
    const peer::Admission near{.door = "unix", .name = "unix", .role = std::string(role::own)};
    const auto& shown = request.conversation.peer().admission;
    const peer::Admission& admission = shown ? *shown : near;
    return SessionInfo{.door = admission.door,
                       .name = admission.name,
                       .role = admission.role,
                       .expiresAt = text_of(admission.expires),
                       .project = actions.project,
                       .version = kVersion,
                       .assets = page_version()};
  };
  methods.add("session.info", "Tells as what the caller was let in, and until when", handler).needs(role::observe);
}

void add_login(peer::Methods& methods, const base::Clock& clock, const DoorActions& actions) {
  const auto handler = [&clock, actions](const NewLogin& wanted, const Request& request) {
    refuse_from_task(request);
    LoginCreated created{.code = random_text(bytes_of_code), .expiresAt = {}, .url = {}};
    const base::UtcTime end = actions.codes.add(created.code, std::string(rpc::word_of(wanted.role)), clock.utc());
    created.expiresAt = base::utc_text(end);
    const std::optional<std::string> url = actions.http_url ? actions.http_url() : std::nullopt;
    if (url) created.url = *url + "/#login=" + created.code;
    return created;
  };
  methods.add("login.create", "Makes a code by which a browser logs in, once, within 5 minutes", handler)
      .needs(role::nobody_far)
      .describe(&NewLogin::role, "What the browser may do; own unless given");
}

void add_token_create(peer::Methods& methods, const base::Clock& clock, const DoorActions& actions) {
  const auto handler = [&clock, &tokens = actions.tokens](const NewToken& wanted, const Request& request) {
    refuse_from_task(request);
    const base::UtcTime now = clock.utc();
    const std::optional<base::UtcTime> end = end_of_life(wanted.expiresSeconds, now);
    const Tokens::Made made = value_or_throw(tokens.create(wanted.name, rpc::word_of(wanted.role), end, now));
    return TokenCreated{.token = made.token,
                        .name = made.admission->name,
                        .role = made.admission->role,
                        .expiresAt = text_of(made.admission->expires)};
  };
  methods
      .add("token.create", "Makes a token for the HTTP door. Answered once it is on disk; only here it is told",
           handler)
      .needs(role::nobody_far)
      .describe(&NewToken::name, "1 to 64 of A-Z a-z 0-9 . _ - that no token has")
      .describe(&NewToken::role, "What its holder may do; own unless given")
      .describe(&NewToken::expiresSeconds, "How long it is good; 90 days unless given, 0 for ever");
}

void add_token_list(peer::Methods& methods, const base::Clock& clock, Tokens& tokens) {
  const auto handler = [&clock, &tokens] {
    std::vector<TokenListed> out;
    for (const Tokens::Listed& token : value_or_throw(tokens.list(clock.utc()))) {
      out.push_back({.name = token.name,
                     .role = token.role,
                     .browser = token.browser,
                     .createdAt = base::utc_text(token.created),
                     .usedAt = text_of(token.used),
                     .expiresAt = text_of(token.expires)});
    }
    return out;
  };
  methods.add("token.list", "Lists the tokens, those of browsers included; not what they say", handler)
      .needs(role::nobody_far)
      .read_only();
}

void add_token_revoke(peer::Methods& methods, const DoorActions& actions) {
  const auto handler = [&tokens = actions.tokens, &codes = actions.codes](const RevokeToken& wanted) {
    if (wanted.name) {
      value_or_throw(tokens.revoke(*wanted.name));
      return TokensRevoked{{*wanted.name}};
    }
    codes.forget_waiting();
    return TokensRevoked{value_or_throw(tokens.revoke_all())};
  };
  methods
      .add("token.revoke", "Ends a token and the connections of its holder, or all of them, login codes too", handler)
      .needs(role::nobody_far)
      .describe(&RevokeToken::name, "Of one token; without it all of them");
}

}  // namespace

void add_door_methods(peer::Methods& methods, const base::Clock& clock, const DoorActions& actions) {
  add_session_info(methods, actions);
  add_login(methods, clock, actions);
  add_token_create(methods, clock, actions);
  add_token_list(methods, clock, actions.tokens);
  add_token_revoke(methods, actions);
  if (!actions.open_http) return;
  methods.add("http.open", "Opens the HTTP door until the daemon ends, if it is closed", actions.open_http)
      .needs(role::nobody_far);
}

}  // namespace duet::app
