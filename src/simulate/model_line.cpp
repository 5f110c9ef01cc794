#include "simulate/model_line.h"

#include <algorithm>
#include <utility>

namespace duet::simulate {

using task::postgres::Answer;
using task::postgres::Fault;

namespace {

constexpr std::chrono::seconds patience{10};

Answer fault_of(Fault::Kind kind, const std::string& why) { return tl::unexpected(Fault{kind, "", why}); }

}  // namespace

ModelLine::ModelLine(transport::Loop& loop, ModelServer& server, Process& daemon, std::size_t host, bool listens,
                     Random chance)
    : loop_(loop), server_(server), daemon_(daemon), host_(host), listens_(listens), chance_(chance) {}

ModelLine::~ModelLine() {
  for (End& end : ends_) {
    if (end.connection) end.connection->open = false;
  }
}

void ModelLine::start(Events events) {
  events_ = std::move(events);
  for (End& end : ends_) connect_later(end);
}

task::postgres::Line::Standing ModelLine::standing() const {
  Standing standing;
  standing.server = "duet@model";
  standing.listens = listens_ && told_up_;
  return standing;
}

void ModelLine::later(std::function<void()> deed) {
  loop_.after(std::chrono::microseconds(chance_.below(500)), lifetime_.bind(std::move(deed))).detach();
}

void ModelLine::call(Way way, std::string_view function, std::vector<Argument> arguments, Done done) {
  End& end = end_of(way);
  end.waiting.push_back({std::string(function), std::move(arguments), std::move(done), loop_.now() + patience});
  pump(end);
  set_tick(end);
}

void ModelLine::reconnect(Way way, const std::string& why) {
  End& end = end_of(way);
  if (end.connection)
    later([this, &end, why, number = end.number] {
      if (end.number == number) close(end, why);
    });
}

// ---- connections ----

void ModelLine::connect_later(End& end) {
  end.stage = Stage::idle;
  const double random = static_cast<double>(chance_.below(1000)) / 1000;
  end.pause = loop_.after(end.pauses.next(random), [this, &end] { connect(end); });
}

void ModelLine::connect(End& end) {
  end.stage = Stage::connecting;
  if (daemon_.dead) return;
  const auto outcome = lifetime_.bind([this, &end](const std::shared_ptr<ServerConnection>& connection) {
    later([this, &end, connection] { connected(end, connection); });
  });
  server_.connect(host_, outcome);
}

void ModelLine::connected(End& end, const std::shared_ptr<ServerConnection>& connection) {
  ++end.number;
  if (!connection || !connection->open) {
    connect_later(end);
    return told_down("the server cannot be reached");
  }
  end.connection = connection;
  const std::uint64_t number = end.number;
  connection->broken = lifetime_.bind([this, &end, number] {
    later([this, &end, number] {
      if (end.number == number) close(end, "the connection broke");
    });
  });
  if (end.way == Way::watch) {
    connection->notified = lifetime_.bind([this, number](const ModelDatabase::Notice& notice) {
      later([this, number, notice] {
        const End& watch = end_of(Way::watch);
        const bool is_heard = listens_ && watch.number == number && watch.stage == Stage::up;
        if (is_heard && channels_.contains(notice.channel)) events_.notified(notice.channel, notice.payload);
      });
    });
  }
  greet(end);
}

void ModelLine::greet(End& end) {
  end.stage = Stage::greeting;
  const std::uint64_t number = end.number;
  Ask ask = lifetime_.bind([this, &end, number](std::string_view function, std::vector<Argument> arguments, Done done) {
    if (end.number != number || !end.connection) {
      return later([done = std::move(done)] { done(fault_of(Fault::Kind::never, "there is no connection")); });
    }
    end.urgent.push_back({std::string(function), std::move(arguments), std::move(done), loop_.now() + patience});
    pump(end);
    set_tick(end);
  });
  Verdict verdict = lifetime_.bind([this, &end, number](const std::optional<std::string>& refusal) {
    if (end.number != number || end.stage != Stage::greeting) return;
    refusal ? close(end, *refusal) : accept(end);
  });
  events_.greet(end.way, std::move(ask), std::move(verdict));
}

void ModelLine::accept(End& end) {
  end.stage = Stage::up;
  end.pauses.begin_anew();
  pump(end);
  if (!is_up(Way::work) || !is_up(Way::watch)) return;
  told_up_ = true;
  told_trouble_.clear();
  events_.up();
}

// What was sent may have been done; what waits goes over the next connection, and a read that was sent does, too.
void ModelLine::close(End& end, const std::string& why) {
  if (!end.connection) return;
  ++end.number;
  std::exchange(end.connection, nullptr)->open = false;
  std::optional<Call> sent = std::exchange(end.sent, std::nullopt);
  std::deque<Call> urgent = std::exchange(end.urgent, {});
  const bool is_read = sent && sent->function.starts_with("read_") && end.stage == Stage::up;
  connect_later(end);
  if (is_read && sent->deadline > loop_.now()) {
    end.waiting.push_front(std::move(*std::exchange(sent, std::nullopt)));
    set_tick(end);
  }
  if (sent && sent->done) sent->done(fault_of(Fault::Kind::unknown, why));
  for (const Call& call : urgent) call.done(fault_of(Fault::Kind::never, why));
  told_down(why);
}

void ModelLine::told_down(const std::string& why) {
  if (!std::exchange(told_up_, false) && why == told_trouble_) return;
  told_trouble_ = why;
  events_.down(why);
}

// ---- calls ----

void ModelLine::pump(End& end) {
  if (!end.connection || end.sent || daemon_.dead) return;
  std::deque<Call>& calls = end.urgent.empty() ? end.waiting : end.urgent;
  if (calls.empty() || (end.urgent.empty() && end.stage != Stage::up)) return;
  Call call = std::move(calls.front());
  calls.pop_front();
  send(end, std::move(call));
}

void ModelLine::send(End& end, Call call) {
  end.sent = std::move(call);
  const std::uint64_t statement = ++end.statement;
  server_.request(end.connection, end.sent->function, end.sent->arguments,
                  lifetime_.bind([this, &end, statement](const Answer& answer) {
                    later([this, &end, statement, answer] { answered(end, statement, answer); });
                  }));
}

void ModelLine::answered(End& end, std::uint64_t statement, const Answer& answer) {
  if (!end.sent || end.statement != statement) return;
  Call call = std::move(*std::exchange(end.sent, std::nullopt));
  if (!answer && answer.error().sqlstate == "DU002" && end.stage == Stage::up) {  // asked again when it was greeted
    end.waiting.push_front(std::move(call));
    return close(end, answer.error().message);
  }
  pump(end);
  if (call.done) call.done(answer);
}

void ModelLine::set_tick(End& end) {
  std::optional<base::TimePoint> next;
  const auto consider = [&next](base::TimePoint time) { next = std::min(next.value_or(time), time); };
  if (end.sent) consider(end.sent->deadline);
  if (!end.urgent.empty()) consider(end.urgent.front().deadline);
  if (!end.waiting.empty()) consider(end.waiting.front().deadline);
  if (next) end.tick = loop_.at(*next, [this, &end] { check_time(end); });
}

// An overdue one is given up with its connection: nobody knows whether the server works on it.
void ModelLine::check_time(End& end) {
  if (end.sent && end.sent->deadline <= loop_.now()) close(end, "the database did not answer in time");
  expire(end, end.urgent);
  expire(end, end.waiting);
  set_tick(end);
}

void ModelLine::expire(End& /*end*/, std::deque<Call>& calls) {
  while (!calls.empty() && calls.front().deadline <= loop_.now()) {
    const Call call = std::move(calls.front());
    calls.pop_front();
    call.done(fault_of(Fault::Kind::never, "the database could not be asked in time"));
  }
}

}  // namespace duet::simulate
