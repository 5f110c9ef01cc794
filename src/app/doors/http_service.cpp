#include "app/doors/http_service.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <boost/describe/class.hpp>

#include "app/doors/login.h"
#include "app/project/failure.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/json.h"
#include "duet/rpc/value.h"
#include "duet/transport/tcp_acceptor.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

using framing::HttpFault;
using transport::TcpAddress;

constexpr base::Duration token_look_pause = std::chrono::seconds(5);  // at tokens, while somebody is there
constexpr base::Duration idle_token_look_pause = std::chrono::hours(1);
constexpr std::uint16_t going_away = 1001;
constexpr std::uint16_t policy_violation = 1008;

struct LoginBody {
  std::string code;
};
BOOST_DESCRIBE_STRUCT(LoginBody, (), (code))

struct LoggedIn {
  std::string token;
  std::string name;
  std::string role;
  std::optional<std::string> expiresAt;
};
BOOST_DESCRIBE_STRUCT(LoggedIn, (), (token, name, role, expiresAt))

HttpFault fault_of_login(const LoginRefused& refused) {
  if (refused.word == "code") return HttpFault::code;
  if (refused.word == "used") return HttpFault::used_code;
  return refused.status == 429 ? HttpFault::too_many_codes : HttpFault::failed;
}

TcpAddress any_port() { return TcpAddress::parse("127.0.0.1:0").value(); }

}  // namespace

HttpService::HttpService(Context context)
    : context_(std::move(context)),
      tokens_(context_.folder.descriptor(), context_.folder.shown(),
              {.on_ended = [this](const auto& admission) { end_session(admission); },
               .on_problem = [this](std::string problem) { take_token_problem(std::move(problem)); }}),
      door_(context_.loop, context_.log, context_.server.methods(), calls()),
      place_(context_.log, context_.folder, "http", "HTTP") {}

HttpDoorCalls HttpService::calls() {
  HttpDoorCalls calls = calls_of_server(context_.server, context_.events, context_.end_caller, context_.metrics);
  calls.admit = [this](std::string_view token) {
    const base::UtcTime now = context_.loop.clock().utc();
    auto found = tokens_.find(token, now);
    const bool may_end = found && found->expires;
    if (may_end && next_look_ > std::min<base::UtcTime>(now + token_look_pause, *found->expires)) watch_tokens();
    return found;
  };
  calls.log_in = [this](std::string_view body) { return log_in(body); };
  calls.log_out = [this](const peer::Admission& admission) {
    [[maybe_unused]] const auto ended = tokens_.log_out(admission);  // what cannot be written has ended, too
  };
  calls.mcp = context_.mcp;
  calls.on_empty = [this] { context_.on_empty(); };
  return calls;
}

HttpLogin HttpService::log_in(std::string_view body) {
  LoginBody login;
  try {
    login = rpc::Json::parse(std::string(body)).as<LoginBody>();
  } catch (const std::exception&) {
    return RefusedLogin{HttpFault::malformed};
  }
  auto result = app::log_in(codes_, tokens_, context_.log, login.code, context_.loop.clock().utc());
  if (const auto* const refused = std::get_if<LoginRefused>(&result)) {
    RefusedLogin told{fault_of_login(*refused)};
    if (refused->status == 429) told.retry_after = static_cast<unsigned>(refused->retry_after.count());
    return told;
  }
  const auto& made = std::get<Tokens::Made>(result);
  watch_tokens();
  LoggedIn logged{made.token, made.admission->name, made.admission->role, std::nullopt};
  if (made.admission->expires) logged.expiresAt = base::utc_text(*made.admission->expires);
  return std::string(rpc::Json(logged).text());
}

void HttpService::start(const HttpSettings& settings, const std::optional<TcpAddress>& given) {
  apply(settings);
  const std::optional<TcpAddress> wanted = place_.choose(given, settings.listen, settings.on_demand);
  if (wanted && wanted->is_loopback()) use(place_.listen(*wanted), *wanted, wanted != settings.listen);
}

void HttpService::start(base::Fd listener, const HttpSettings& settings) {
  apply(settings);
  const TcpAddress address = TcpAddress::of(listener.get());
  if (!address.is_loopback())
    throw Failure("the socket passed as 'http' listens at " + address.text() + ": it must be " + why_not_http(address));
  place_.take_passed();
  use(std::move(listener), address, false);
}

void HttpService::apply(const HttpSettings& settings) {
  on_demand_ = settings.on_demand;
  door_.set_hosts(settings.hosts);
  door_.set_most_connections(std::min(settings.max_connections, context_.most_connections));
  tokens_.set_session(settings.session);
  watch_tokens();
}

// One that somebody has asked for stays open, unless the settings say that it must not be.
void HttpService::reload(const HttpSettings& settings) {
  if (ends_) return;
  apply(settings);
  context_.set_problem("http", {});
  if (place_.is_fixed()) return;
  if (!settings.listen) {
    if (!settings.on_demand || !place_.is_beyond_settings()) close_door();
    return;
  }
  try {
    if (!place_.is_at(*settings.listen)) use(place_.listen(*settings.listen), *settings.listen, false);
    place_.confirm(*settings.listen);
  } catch (const Failure& failure) {
    context_.log.error("the HTTP door stays as it was", {{"reason", failure.what()}});
    context_.set_problem("http", failure.what());
  }
}

std::string HttpService::open_on_demand() {
  if (ends_) throw task::is_stopping();
  if (url()) return *url();
  if (!on_demand_) {
    throw task::unavailable("http", "the HTTP door is closed: set [http] listen = \"on-demand\" in your settings");
  }
  try {
    use(place_.listen(any_port()), any_port(), true);
    return *url();
  } catch (const Failure& failure) {
    throw task::unavailable("http", failure.what());
  }
}

void HttpService::use(base::Fd listener, const TcpAddress& wanted, bool beyond_settings) {
  const int socket = listener.get();
  door_.open(transport::tcp_acceptor(context_.loop, std::move(listener)));
  place_.opened(socket, wanted, beyond_settings);
}

void HttpService::close_door() {
  if (!place_.address()) return;
  door_.close_all();
  for (const auto& [number, connection] : websockets_) connection->close_with(going_away, "");
  place_.closed();
}

std::optional<std::string> HttpService::url() const {
  return place_.address() && !ends_ ? std::optional("http://" + place_.address()->text()) : std::nullopt;
}

void HttpService::client_opened(peer::Connection& connection) {
  const peer::Peer& peer = connection.peer();
  if (peer.admission && peer.admission->door == "http") websockets_.emplace(peer.connection, &connection);
}

void HttpService::client_forgotten(std::uint64_t number) {
  if (websockets_.erase(number) != 0) door_.connection_gone(number);
}

void HttpService::take_token_problem(std::string problem) {
  if (!problem.empty()) context_.log.error("tokens cannot be kept", {{"what", problem}});
  context_.set_problem("tokens", std::move(problem));
}

void HttpService::end_session(const std::shared_ptr<const peer::Admission>& admission) {
  context_.log.info("a token has ended", {{"token", admission->name}});
  door_.end_session(*admission);
  if (context_.mcp != nullptr) context_.mcp->end_session(*admission);
  for (const auto& [number, connection] : websockets_) {
    if (connection->peer().admission == admission) connection->close_with(policy_violation, "session-ended");
  }
}

void HttpService::watch_tokens() {
  const std::optional<base::UtcTime> next = tokens_.next_end();
  next_look_ = base::UtcTime::max();
  if (!next) return token_timer_.cancel();
  // The clock may be set meanwhile, or the machine sleep.
  const base::Duration longest = connection_count() > 0 ? token_look_pause : idle_token_look_pause;
  const base::UtcTime now = context_.loop.clock().utc();
  const base::Duration left = std::clamp<base::Duration>(*next - now, {}, longest);
  next_look_ = now + left;
  token_timer_ = context_.loop.after(left, [this] {
    tokens_.tick(context_.loop.clock().utc());
    watch_tokens();
  });
}

void HttpService::take_nobody() {
  ends_ = true;
  door_.close_acceptor();
}

void HttpService::stop(bool restarting) {
  ends_ = true;
  place_.leave(restarting);
  door_.stop();
}

}  // namespace duet::app
