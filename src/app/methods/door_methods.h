#pragma once

#include <functional>
#include <optional>
#include <string>

#include <boost/describe/class.hpp>

#include "app/doors/login_codes.h"
#include "app/doors/tokens.h"
#include "duet/base/clock.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// What `http.open` answers.
struct HttpOpened {
  std::string url;  ///< without a login code
};
BOOST_DESCRIBE_STRUCT(HttpOpened, (), (url))

/// What the methods about network doors act on.
struct DoorActions {
  Tokens& tokens;
  LoginCodes& codes;
  std::string project;  ///< its root, for people
  /// Where the HTTP door is, without a slash at its end; none if it is closed.
  std::function<std::optional<std::string>()> http_url = {};
  /// Opens the HTTP door if it is closed; throws rpc::Error if it may not be. None: there is no `http.open`.
  std::function<HttpOpened()> open_http = {};
};

/// `session.info`, `login.create`, `token.*` and `http.open`: who asks, and who may come in. All but the first are for
/// the Unix socket only, and no task may make tokens or login codes: it could do by them what people are to decide.
void add_door_methods(peer::Methods& methods, const base::Clock& clock, const DoorActions& actions);

}  // namespace duet::app
