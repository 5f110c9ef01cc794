#include "task/postgres/session.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "duet/base/all_calls.h"

namespace duet::task::postgres {
namespace {

std::string field(const Libpq::PGresult* result, int which) {
  const char* text = libpq().PQresultErrorField(result, which);
  return text == nullptr ? "" : text;
}

Result rows_of(const Libpq::PGresult* from) {
  const Libpq& pq = libpq();
  const int columns = pq.PQnfields(from);
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(columns));
  for (int column = 0; column < columns; ++column) names.emplace_back(pq.PQfname(from, column));
  const int rows = pq.PQntuples(from);
  std::size_t bytes = 0;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      bytes += static_cast<std::size_t>(pq.PQgetlength(from, row, column));
    }
  }
  Result result(std::move(names));
  result.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), bytes);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const bool null = pq.PQgetisnull(from, row, column) != 0;
      const auto length = static_cast<std::size_t>(pq.PQgetlength(from, row, column));
      result.add(null ? Result::Cell() : std::string_view(pq.PQgetvalue(from, row, column), length));
    }
  }
  return result;
}

// Only an ERROR leaves the connection as it was and is certain. What ends the connection may come after the commit.
Fault fault_of(const Libpq::PGresult* result) {
  const bool certain = field(result, Libpq::severity_field) == "ERROR";
  Fault fault{certain ? Fault::Kind::refused : Fault::Kind::unknown, field(result, Libpq::sqlstate_field),
              field(result, Libpq::message_field)};
  if (fault.message.empty()) fault.message = first_line(libpq().PQresultErrorMessage(result));
  return fault;
}

Answer answer_of(const Libpq::PGresult* result) {
  switch (libpq().PQresultStatus(result)) {
    case Libpq::PGRES_TUPLES_OK:
    case Libpq::PGRES_COMMAND_OK:
    case Libpq::PGRES_EMPTY_QUERY:
      return rows_of(result);
    default:
      return tl::unexpected(fault_of(result));
  }
}

std::vector<const char*> values_of(const Statement& statement) {
  std::vector<const char*> values;
  values.reserve(statement.arguments.size());
  for (const Argument& argument : statement.arguments) values.push_back(argument ? argument->c_str() : nullptr);
  return values;
}

constexpr int uses_before_a_name = 2;

// Short, since names end after 63 bytes.
std::string name_of(const std::string& sql) { return "duet " + std::to_string(std::hash<std::string>()(sql)); }

// There is no such name, there is one already, or what it stands for has become another thing.
bool is_about_the_name(const std::string& sqlstate) {
  return sqlstate == "26000" || sqlstate == "42P05" || sqlstate == "0A000";
}

}  // namespace

std::size_t Statement::bytes() const {
  std::size_t sum = sql.size();
  for (const Argument& argument : arguments) sum += argument ? argument->size() : 0;
  return sum;
}

bool Statement::has_zero_byte() const {
  const auto has = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  return has(sql) || std::any_of(arguments.begin(), arguments.end(),
                                 [&](const Argument& argument) { return argument && has(*argument); });
}

Statement function_call(std::string_view schema, std::string_view function, std::vector<Argument> arguments) {
  std::string sql = "SELECT * FROM ";
  sql.append(schema).append(".").append(function).append("(");
  for (std::size_t i = 1; i <= arguments.size(); ++i) sql.append(i == 1 ? "$" : ",$").append(std::to_string(i));
  return {std::move(sql += ')'), std::move(arguments)};
}

Session::Session(transport::Loop& loop, PgConnection connection, Events events)
    : loop_(loop), connection_(std::move(connection)), events_(std::move(events)) {
  libpq().PQsetNoticeReceiver(connection_.get(), receive_notice, this);
  watch_ = loop_.watch(libpq().PQsocket(connection_.get()), EPOLLIN, *this);
}

void Session::send(const Statement& statement, Line::Done done) {
  done_ = std::move(done);
  sent_ = &statement;
  answer_.reset();
  complete_ = false;
  if (!begin() || !flush()) lose_later(trouble());
}

bool Session::begin() {
  if (!prepares_ || sent_->script || sent_->arguments.empty()) return send_in_full();
  Known& known = known_[sent_->sql];
  const std::string name = name_of(sent_->sql);
  if (known.prepared) return send_by_name(name);
  if (++known.uses <= uses_before_a_name) return send_in_full();
  step_ = Step::preparing;
  return libpq().PQsendPrepare(connection_.get(), name.c_str(), sent_->sql.c_str(), 0, nullptr) == 1;
}

bool Session::send_in_full() {
  step_ = Step::whole;
  if (sent_->script) return libpq().PQsendQuery(connection_.get(), sent_->sql.c_str()) == 1;
  const std::vector<const char*> values = values_of(*sent_);
  return libpq().PQsendQueryParams(connection_.get(), sent_->sql.c_str(), static_cast<int>(values.size()), nullptr,
                                   values.data(), nullptr, nullptr, 0) == 1;
}

bool Session::send_by_name(const std::string& name) {
  step_ = Step::named;
  const std::vector<const char*> values = values_of(*sent_);
  return libpq().PQsendQueryPrepared(connection_.get(), name.c_str(), static_cast<int>(values.size()), values.data(),
                                     nullptr, nullptr, 0) == 1;
}

// What came was not the answer yet: the name is made and can be used, or there is none and all is sent in full.
bool Session::goes_on() {
  const Step step = step_;
  const bool fine = !answer_ || *answer_;
  if (step == Step::whole || !sound_) return false;
  if (step == Step::named && (fine || !is_about_the_name(answer_->error().sqlstate))) return false;
  if (fine) {
    known_[sent_->sql].prepared = true;
  } else {
    prepares_ = false;
  }
  answer_.reset();
  complete_ = false;
  if (!(fine ? send_by_name(name_of(sent_->sql)) : send_in_full()) || !flush()) lose_later(trouble());
  return true;
}

std::string Session::parameter(const std::string& name) const {
  const char* value = libpq().PQparameterStatus(connection_.get(), name.c_str());
  return value == nullptr ? "" : value;
}

std::string Session::tls() const {
  if (libpq().PQsslInUse(connection_.get()) == 0) return {};
  const char* protocol = libpq().PQsslAttribute(connection_.get(), "protocol");
  return protocol == nullptr ? "TLS" : protocol;
}

void Session::receive_notice(void* session, const Libpq::PGresult* result) {
  auto& self = *static_cast<Session*>(session);
  Notice notice{field(result, Libpq::severity_field), field(result, Libpq::sqlstate_field),
                field(result, Libpq::message_field)};
  if (notice.severity == "FATAL" || notice.severity == "PANIC") self.last_words_ = notice.message;
  if (self.events_.noticed) self.events_.noticed(std::move(notice));
}

void Session::on_ready(std::uint32_t) {
  const auto there = lifetime_.watch();
  if (!read() || !flush()) sound_ = false;
  base::AllCalls calls;  // libpq may have closed the socket: nobody would come here again
  calls.make([this] { collect_results(); });
  if (complete_) calls.make([this] { answer(); });
  if (there()) calls.make([this] { tell_notifications(); });
  if (there() && !sound_ && !losing_) calls.make([this] { lose(trouble()); });
  calls.check();
}

bool Session::read() {
  const Libpq& pq = libpq();
  if (pq.PQconsumeInput(connection_.get()) == 0) return false;
  if (pq.SSL_pending == nullptr || pq.PQsslInUse(connection_.get()) == 0) return true;
  // The loop does not see what OpenSSL has decrypted and libpq has not taken.
  void* ssl = pq.PQsslStruct(connection_.get(), "OpenSSL");
  while (ssl != nullptr && pq.SSL_pending(ssl) > 0) {
    if (pq.PQconsumeInput(connection_.get()) == 0) return false;
  }
  return true;
}

bool Session::flush() {
  const int left = libpq().PQflush(connection_.get());
  const bool writing = left == 1;
  if (writing != writing_) watch_.change(writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
  writing_ = writing;
  return left >= 0;
}

void Session::tell_notifications() {
  const auto there = lifetime_.watch();
  while (there()) {
    const PgNotification notification(libpq().PQnotifies(connection_.get()));
    if (!notification) break;
    if (events_.notified) events_.notified(notification->relname, notification->extra);
  }
  if (there() && !last_words_.empty()) sound_ = false;
}

void Session::collect_results() {
  while (is_busy() && !complete_ && libpq().PQisBusy(connection_.get()) == 0) {
    const PgResult result(libpq().PQgetResult(connection_.get()));
    if (!result) {
      complete_ = true;
    } else {
      keep(result);
    }
  }
}

// An error that comes behind rows (at the commit, or with the end of the connection) is the answer.
void Session::keep(const PgResult& result) {
  if (answer_ && !*answer_) return;
  answer_ =
      tl::unexpected(Fault{Fault::Kind::unknown, "", ""});  // should it not be read, which nobody can a second time
  answer_ = answer_of(result.get());
  if (*answer_ || answer_->error().kind == Fault::Kind::refused) return;
  sound_ = false;
  last_words_ = answer_->error().message;
}

void Session::answer() {
  if (goes_on()) return;
  complete_ = false;
  Answer answer = answer_ ? std::move(*answer_) : Answer(Result());
  answer_.reset();
  const Line::Done done = std::exchange(done_, nullptr);
  done(answer);
}

void Session::lose_later(const std::string& why) {
  sound_ = false;
  losing_ = loop_.deferred([this, why] { lose(why); });
}

void Session::lose(const std::string& why) {
  const auto there = lifetime_.watch();
  watch_.cancel();
  base::AllCalls calls;
  if (is_busy()) {
    const std::string sqlstate = answer_ && !*answer_ ? answer_->error().sqlstate : "";
    const Line::Done done = std::exchange(done_, nullptr);
    calls.make([&] { done(tl::unexpected(Fault{Fault::Kind::unknown, sqlstate, why})); });
  }
  // What is called may be the end of this.
  const auto lost = there() ? std::exchange(events_.lost, nullptr) : nullptr;
  if (lost) calls.make([&] { lost(why); });
  calls.check();
}

std::string Session::trouble() const {
  if (!last_words_.empty()) return last_words_;
  const std::string said = first_line(libpq().PQerrorMessage(connection_.get()));
  return said.empty() ? "the connection ended" : said;
}

}  // namespace duet::task::postgres
