#include "app/doors/http_service.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>
#include <variant>

#include <boost/describe/class.hpp>

#include "app/doors/login.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/json.h"
#include "duet/rpc/value.h"
#include "duet/transport/tcp_acceptor.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

using framing::HttpFault;
using transport::TcpAddress;

constexpr const char* port_name = "http.port";  // the last one
constexpr const char* open_name = "http.open";  // where the next daemon opens it, after a restart
constexpr const char* given_mark = " by the command line\n";
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

std::string why_not_to_listen_for_http(const TcpAddress& address, const std::error_code& error) {
  const std::string what = "cannot listen at " + address.text() + " for HTTP: ";
  if (error.value() == EADDRINUSE) return what + "another program listens there: choose another port, or 0 for any";
  if (error.value() == EACCES) return what + "ports below 1024 are for root: choose another";
  if (error.value() == EADDRNOTAVAIL) return what + "this machine has no such address";
  return what + error.message();
}

std::optional<std::uint16_t> port_in(std::string_view text) {
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = end == text.data() + text.size() || *end == '\n';
  return error == std::errc() && is_whole && number != 0 ? std::optional(number) : std::nullopt;
}

TcpAddress any_port() { return TcpAddress::parse("127.0.0.1:0").value(); }

}  // namespace

HttpService::HttpService(Context context)
    : context_(std::move(context)),
      tokens_(context_.folder.descriptor(), context_.folder.shown(),
              {.on_ended = [this](const auto& admission) { end_session(admission); },
               .on_problem = [this](std::string problem) { take_token_problem(std::move(problem)); }}),
      door_(context_.loop, context_.log, context_.server.methods(), calls()) {}

HttpDoorCalls HttpService::calls() {
  return {.admit =
              [this](std::string_view token) {
                auto found = tokens_.find(token, context_.loop.clock().utc());
                watch_tokens();
                return found;
              },
          .log_in = [this](std::string_view body) { return log_in(body); },
          .log_out =
              [this](const peer::Admission& admission) {
                [[maybe_unused]] const auto ended =
                    tokens_.log_out(admission);  // what cannot be written has ended, too
              },
          .take_websocket =
              [this](std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
                     std::shared_ptr<const peer::Admission> admission, std::string_view first_bytes) {
                return context_.server.admit(std::move(channel), identity, peer::Protocol::websocket(), first_bytes,
                                             std::move(admission));
              },
          .begin_caller = [this] { return context_.server.new_number(); },
          .end_caller = [this](std::uint64_t number) { context_.end_caller(number); },
          .events = &context_.events,
          .metrics = [this] { return context_.metrics(); },
          .on_empty = [this] { context_.on_empty(); }};
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
  const std::string left = context_.folder.read_small(open_name);
  const std::optional<TcpAddress> former = TcpAddress::parse(left.substr(0, left.find_first_of(" \n")));
  context_.folder.remove(open_name);
  given_ = given || (former && left.ends_with(given_mark));
  const bool may_be_open = settings.listen || settings.on_demand || given_;
  wanted_ = given ? given : may_be_open && former && former->is_loopback() ? former : settings.listen;
  beyond_settings_ = wanted_ && wanted_ != settings.listen;
  if (!wanted_) return;
  try {
    listen(*wanted_);
  } catch (const std::system_error& error) {
    throw Failure(why_not_to_listen_for_http(*wanted_, error.code()));
  }
}

void HttpService::start(base::Fd listener, const HttpSettings& settings) {
  apply(settings);
  const TcpAddress address = TcpAddress::of(listener.get());
  if (!address.is_loopback())
    throw Failure("the socket passed as 'http' listens at " + address.text() + ": it must be " + why_not_http(address));
  passed_ = true;
  use(std::move(listener));
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
  if (passed_ || given_) return;
  if (!settings.listen) {
    if (!settings.on_demand || !beyond_settings_) close_door();
    return;
  }
  try {
    if (!is_at(*settings.listen)) listen(*settings.listen);
    wanted_ = settings.listen;
    beyond_settings_ = false;
  } catch (const std::system_error& error) {
    const std::string why = why_not_to_listen_for_http(*settings.listen, error.code());
    context_.log.error("the HTTP door stays as it was", {{"reason", why}});
    context_.set_problem("http", why);
  }
}

// Port 0 is any, so also the one that it has.
bool HttpService::is_at(const TcpAddress& address) const {
  return address_ && (*address_ == address || address_->with_port(0) == address);
}

std::string HttpService::open_on_demand() {
  if (ends_) throw task::is_stopping();
  if (address_) return *url();
  if (!on_demand_) {
    throw task::unavailable("http", "the HTTP door is closed: set [http] listen = \"on-demand\" in your settings");
  }
  try {
    listen(any_port());
    wanted_ = any_port();
    beyond_settings_ = true;
    return *url();
  } catch (const std::system_error& error) {
    throw task::unavailable("http", why_not_to_listen_for_http(any_port(), error.code()));
  }
}

void HttpService::listen(const TcpAddress& address) {
  use(address.port() == 0 ? listen_at_last_port(address) : transport::listen_tcp(address));
}

// An open tab finds its daemon again.
base::Fd HttpService::listen_at_last_port(const TcpAddress& address) {
  if (const std::optional<std::uint16_t> last = port_in(context_.folder.read_small(port_name))) {
    try {
      return transport::listen_tcp(address.with_port(*last));
    } catch (const std::system_error&) {
      // Somebody else has it now.
    }
  }
  return transport::listen_tcp(address);
}

void HttpService::use(base::Fd listener) {
  const TcpAddress address = TcpAddress::of(listener.get());
  door_.open(transport::tcp_acceptor(context_.loop, std::move(listener)));
  address_ = address;
  context_.log.info("listening", {{"http", address.text()}});
  try {
    context_.folder.write_small(port_name, std::to_string(address.port()) + '\n');
  } catch (const Failure& failure) {
    context_.log.warn("the port is not remembered", {{"reason", failure.what()}});
  }
}

void HttpService::close_door() {
  if (!address_) return;
  door_.close_all();
  for (const auto& [number, connection] : websockets_) connection->close_with(going_away, "");
  address_.reset();
  wanted_.reset();
  context_.log.info("the HTTP door is closed");
}

std::optional<std::string> HttpService::url() const {
  return address_ && !ends_ ? std::optional("http://" + address_->text()) : std::nullopt;
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
  for (const auto& [number, connection] : websockets_) {
    if (connection->peer().admission == admission) connection->close_with(policy_violation, "session-ended");
  }
}

void HttpService::watch_tokens() {
  const std::optional<base::UtcTime> next = tokens_.next_end();
  if (!next) return token_timer_.cancel();
  // The clock may be set meanwhile, or the machine sleep.
  const base::Duration longest = connection_count() > 0 ? std::chrono::seconds(5) : std::chrono::seconds(3600);
  const base::Duration left = std::clamp<base::Duration>(*next - context_.loop.clock().utc(), {}, longest);
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
  if (restarting && address_ && beyond_settings_) {
    try {
      context_.folder.write_small(open_name, wanted_->text() + (given_ ? given_mark : "\n"));
    } catch (const Failure& failure) {
      context_.log.warn("the next daemon does not know of the open door", {{"reason", failure.what()}});
    }
  }
  door_.stop();
}

}  // namespace duet::app
