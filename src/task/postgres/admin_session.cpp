#include "task/postgres/admin_session.h"

#include <deque>

#include "duet/transport/loop.h"
#include "task/postgres/server_search.h"

namespace duet::task::postgres {

/// A loop of its own, which is turned while somebody waits.
class AdminSession::Talk {
 public:
  explicit Talk(const StoreAddress& address) : address_(address), search_(loop_, address_) {}

  std::optional<std::string> connect(Wait most);
  std::optional<std::string> connect_to_another(Wait most);
  Answer send(const Statement& statement, Wait most);
  template <typename Ready>
  void turn_until(Wait most, Ready ready);

  Session* session() const { return session_.get(); }
  const std::string& server() const { return server_; }
  bool is_here() const { return is_here_; }

  std::vector<Notice> notices;
  std::deque<std::pair<std::string, std::string>> notifications;

 private:
  void open(ServerSearch::Found found);

  transport::Loop loop_;
  StoreAddress address_;
  ServerSearch search_;
  std::unique_ptr<Session> session_;
  std::string server_;
  bool is_here_ = false;
  std::string trouble_ = "there is no connection";
};

template <typename Ready>
void AdminSession::Talk::turn_until(Wait most, Ready ready) {
  const base::TimePoint deadline = loop_.now() + most;
  while (!ready() && loop_.now() < deadline) loop_.turn(deadline);
}

std::optional<std::string> AdminSession::Talk::connect(Wait most) {
  std::optional<tl::expected<ServerSearch::Found, std::string>> outcome;
  search_.begin([&](tl::expected<ServerSearch::Found, std::string> found) { outcome = std::move(found); });
  turn_until(most, [&] { return outcome.has_value(); });
  search_.stop();
  if (!outcome) return "no server answered in time";
  if (!*outcome) return outcome->error();
  open(std::move(**outcome));
  return std::nullopt;
}

std::optional<std::string> AdminSession::Talk::connect_to_another(Wait most) {
  session_.reset();
  search_.try_others_first();
  return connect(most);
}

void AdminSession::Talk::open(ServerSearch::Found found) {
  server_ = address_.user() + '@' + found.where.text() + '/' + address_.database();
  is_here_ = Host{found.where.host, found.where.address, found.where.port}.is_here();
  Session::Events events;
  events.lost = [this](const std::string& why) {
    trouble_ = why;
    session_.reset();
  };
  events.notified = [this](const std::string& channel, const std::string& payload) {
    notifications.emplace_back(channel, payload);
  };
  events.noticed = [this](Notice notice) { notices.push_back(std::move(notice)); };
  session_ = std::make_unique<Session>(loop_, std::move(found.connection), std::move(events));
}

Answer AdminSession::Talk::send(const Statement& statement, Wait most) {
  if (!session_) return tl::unexpected(Fault{Fault::Kind::never, "", trouble_});
  if (statement.has_zero_byte()) return tl::unexpected(Fault{Fault::Kind::refused, "22021", "text with a zero byte"});
  std::optional<Answer> answer;
  session_->send(statement, [&](const Answer& given) { answer = given; });
  turn_until(most, [&] { return answer.has_value(); });
  if (answer) return *answer;
  // Its answer would be taken for that of the next one.
  session_.reset();
  trouble_ = "the database did not answer in time";
  return tl::unexpected(Fault{Fault::Kind::unknown, "", trouble_});
}

AdminSession::AdminSession(std::unique_ptr<Talk> talk) : talk_(std::move(talk)) {}
AdminSession::~AdminSession() = default;

tl::expected<std::unique_ptr<AdminSession>, std::string> AdminSession::open(const StoreAddress& address, Wait most) {
  auto talk = std::make_unique<Talk>(address);
  if (auto trouble = talk->connect(most)) return tl::unexpected(*trouble);
  return std::unique_ptr<AdminSession>(new AdminSession(std::move(talk)));
}

std::optional<std::string> AdminSession::try_another(Wait most) { return talk_->connect_to_another(most); }

Answer AdminSession::run(const std::string& sql, Wait most) { return talk_->send({sql, {}, true}, most); }

Answer AdminSession::ask(const std::string& sql, std::vector<Argument> arguments, Wait most) {
  return talk_->send({sql, std::move(arguments)}, most);
}

Answer AdminSession::call(std::string_view schema, std::string_view function, std::vector<Argument> arguments,
                          Wait most) {
  return talk_->send(function_call(schema, function, std::move(arguments)), most);
}

std::vector<Notice> AdminSession::take_notices() { return std::exchange(talk_->notices, {}); }

std::optional<std::pair<std::string, std::string>> AdminSession::await_notification(Wait most) {
  talk_->turn_until(most, [&] { return !talk_->notifications.empty() || !is_open(); });
  if (talk_->notifications.empty()) return std::nullopt;
  auto first = std::move(talk_->notifications.front());
  talk_->notifications.pop_front();
  return first;
}

bool AdminSession::is_open() const { return talk_->session() != nullptr; }

int AdminSession::server_version() const { return is_open() ? talk_->session()->server_version() : 0; }

std::string AdminSession::server_parameter(const std::string& name) const {
  return is_open() ? talk_->session()->parameter(name) : std::string();
}

std::string AdminSession::tls() const { return is_open() ? talk_->session()->tls() : std::string(); }

const std::string& AdminSession::server() const { return talk_->server(); }

bool AdminSession::is_here() const { return talk_->is_here(); }

bool AdminSession::is_pooled() {
  if (!is_open()) return false;
  const int told = talk_->session()->server_process();
  const Answer answer = ask("SELECT pg_catalog.pg_backend_pid()", {});
  return answer && answer->number(0, 0) != told;
}

}  // namespace duet::task::postgres
