#include "task/postgres/connecting.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace duet::task::postgres {

struct Connecting::Attempt {
  StoreAddress::Parameters parameters;
  PgConnection connection;

  Libpq::PostgresPollingStatusType step();

 private:
  Libpq::PostgresPollingStatusType start();
};

namespace {

void ignore_notice(void*, const Libpq::PGresult*) {}

StoreAddress::Parameters parameters_for(const StoreAddress& address, const Candidate& candidate) {
  StoreAddress::Parameters parameters = address.parameters();
  if (!candidate.host.empty()) parameters["host"] = candidate.host;
  if (!candidate.address.empty()) parameters["hostaddr"] = candidate.address;
  parameters["port"] = candidate.port;
  return parameters;
}

// The code that stands before the server's words, which may be of any language; it is taken out of them.
std::string take_state(std::string& said) {
  constexpr std::string_view before = ":  ";
  constexpr std::string_view behind = ": ";
  constexpr std::size_t length = 5;
  const std::size_t found = said.find(before);
  if (found == std::string::npos) return {};
  const std::size_t at = found + before.size();
  std::string state = said.substr(at, length);
  const auto fits = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  const bool is_state = state.size() == length && std::all_of(state.begin(), state.end(), fits);
  if (!is_state || said.compare(at + length, behind.size(), behind) != 0) return {};
  said.erase(at, length + behind.size());
  return state;
}

// A wrong password, an unknown role, no line in pg_hba.conf; no such database; no right to it.
bool is_turning_away(const std::string& state) {
  return state.starts_with("28") || state == "3D000" || state == "42501";
}

}  // namespace

Libpq::PostgresPollingStatusType Connecting::Attempt::start() {
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : parameters) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  connection.reset(libpq().PQconnectStartParams(names.data(), values.data(), 0));
  parameters.clear();
  if (!connection || libpq().PQstatus(connection.get()) == Libpq::CONNECTION_BAD) return Libpq::PGRES_POLLING_FAILED;
  libpq().PQsetNoticeReceiver(connection.get(), ignore_notice, nullptr);   // libpq's own writes to stderr
  libpq().PQsetErrorVerbosity(connection.get(), Libpq::PQERRORS_VERBOSE);  // else it has no codes in it
  return Libpq::PGRES_POLLING_WRITING;
}

Libpq::PostgresPollingStatusType Connecting::Attempt::step() {
  return connection ? libpq().PQconnectPoll(connection.get()) : start();
}

Connecting::Connecting(transport::Loop& loop, const StoreAddress& address, const Candidate& candidate,
                       base::Duration most, Done done)
    : loop_(loop), attempt_(std::make_shared<Attempt>()), done_(std::move(done)) {
  attempt_->parameters = parameters_for(address, candidate);
  deadline_ = loop_.after(most, [this] {
    late_ = true;
    fail("no answer");
  });
  step();
}

void Connecting::on_ready(std::uint32_t) { step(); }

void Connecting::step() {
  watch_.cancel();  // a step may close the socket and open another one
  try {
    loop_.run_elsewhere([attempt = attempt_] { return attempt->step(); },
                        lifetime_.bind([this](base::Result<Libpq::PostgresPollingStatusType> status) {
                          if (done_) stepped(status.get());
                        }));
  } catch (const std::system_error& error) {
    deadline_ = loop_.after(base::Duration::zero(), [this, why = std::string(error.what())] { fail(why); });
  }
}

void Connecting::stepped(Libpq::PostgresPollingStatusType status) {
  switch (status) {
    case Libpq::PGRES_POLLING_READING:
      return wait(EPOLLIN);
    case Libpq::PGRES_POLLING_WRITING:
      return wait(EPOLLOUT);
    case Libpq::PGRES_POLLING_OK:
      libpq().PQsetErrorVerbosity(attempt_->connection.get(), Libpq::PQERRORS_DEFAULT);
      libpq().PQsetnonblocking(attempt_->connection.get(), 1);
      return finish(std::move(attempt_->connection));
    default:
      return take_refusal(attempt_->connection ? first_line(libpq().PQerrorMessage(attempt_->connection.get()))
                                               : "out of memory");
  }
}

void Connecting::wait(std::uint32_t events) {
  try {
    watch_ = loop_.watch(libpq().PQsocket(attempt_->connection.get()), events, *this);
  } catch (const std::system_error& error) {
    fail(error.what());
  }
}

void Connecting::take_refusal(std::string said) {
  const bool lacks_password = said.find("no password supplied") != std::string::npos;  // libpq's own words
  turned_away_ = is_turning_away(take_state(said)) || lacks_password;
  fail(said);
}

void Connecting::fail(const std::string& why) { finish(tl::unexpected(why)); }

void Connecting::finish(tl::expected<PgConnection, std::string> outcome) {
  watch_.cancel();
  deadline_.cancel();
  // What is called may be the end of this.
  const Done done = std::exchange(done_, nullptr);
  done(std::move(outcome));
}

}  // namespace duet::task::postgres
