#include "task/postgres/database.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

namespace duet::task::postgres {
namespace {

constexpr std::size_t longest_schema = 40;

bool is_schema(const std::string& name) {
  const auto fits = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
  };
  return !name.empty() && name.size() <= longest_schema && (name[0] < '0' || name[0] > '9') &&
         std::all_of(name.begin(), name.end(), fits);
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char letter : name) {
    if (letter == '"') text += '"';
    text += letter;
  }
  return text + '"';
}

std::string random_token() {
  std::random_device source;
  std::string token;
  for (int i = 0; i < 16; ++i) token += "0123456789abcdef"[source() % 16];
  return token;
}

// Whether the server works on what a process of ours was sent. Who may not see it learns nothing.
std::optional<bool> works(const Answer& answer) {
  if (!answer) return std::nullopt;
  if (answer->rows() == 0) return false;
  const Result::Cell state = answer->at(0, 0);
  if (!state) return std::nullopt;
  return *state == "active";
}

}  // namespace

struct Database::End {
  End(Way its_way, transport::Loop& loop, const StoreAddress& address, Link::Events events,
      const Link::Options& options)
      : way(its_way), link(loop, address, std::move(events), options) {}

  Way way;
  bool pooled = false;
  std::string trouble = "not connected yet";
  Link link;
};

Database::Database(transport::Loop& loop, StoreAddress address, std::string schema, Options options)
    : loop_(loop),
      address_(std::move(address)),
      schema_(std::move(schema)),
      options_(options),
      probe_channel_(schema_ + "_probe_" + random_token()) {
  if (!is_schema(schema_)) throw std::invalid_argument("no name of a schema");
  work_ = std::make_unique<End>(Way::work, loop_, address_, link_events(Way::work), options_.link);
  watch_ = std::make_unique<End>(Way::watch, loop_, address_, link_events(Way::watch), options_.link);
}

Database::~Database() = default;

Database::End& Database::end_of(Way way) const { return way == Way::work ? *work_ : *watch_; }
Database::End& Database::other_than(const End& end) const { return end.way == Way::work ? *watch_ : *work_; }

Link::Events Database::link_events(Way way) {
  Link::Events events;
  events.connected = [this, way] { connected(way); };
  events.up = [this, way] { went_up(end_of(way)); };
  events.down = [this, way](const std::string& why) { went_down(end_of(way), why); };
  // Behind a pooler the work connection may be told of what others listen to.
  if (way == Way::watch) {
    events.notified = [this](const std::string& channel, const std::string& payload) { heard(channel, payload); };
  }
  if (way == Way::work) events.slow = [this] { move_reads(); };
  events.inquire = [this, way](int process, std::function<void(std::optional<bool>)> answer) {
    inquire(end_of(way), process, std::move(answer));
  };
  return events;
}

void Database::start(Events events) {
  events_ = std::move(events);
  work_->link.start();
  watch_->link.start();
}

void Database::call(Way way, std::string_view function, std::vector<Argument> arguments, Done done) {
  const bool is_read = way == Way::work && function.starts_with("read_");
  const bool is_guest = is_read && work_->link.is_slow() && can_read_for_work();
  Link& link = is_guest ? watch_->link : end_of(way).link;
  link.call(function_call(schema_, function, std::move(arguments)), std::move(done),
            is_guest  ? Link::Place::guest
            : is_read ? Link::Place::movable
                      : Link::Place::own);
}

bool Database::can_read_for_work() const { return watch_->link.is_up() && !watch_->link.is_slow(); }

void Database::move_reads() {
  if (!can_read_for_work()) return;
  for (Call& call : work_->link.take_movable()) {
    watch_->link.call(std::move(call.statement), std::move(call.done), Link::Place::guest);
  }
}

void Database::listen(const std::string& channel) {
  if (!channels_.insert(channel).second || watch_->pooled) return;
  if (watch_->link.session() != nullptr) watch_->link.ask({"LISTEN " + quoted(channel), {}}, [](const Answer&) {});
}

void Database::unlisten(const std::string& channel) {
  if (channels_.erase(channel) == 0 || watch_->pooled) return;
  if (watch_->link.session() != nullptr) watch_->link.ask({"UNLISTEN " + quoted(channel), {}}, [](const Answer&) {});
}

bool Database::is_up(Way way) const { return end_of(way).link.is_up(); }

void Database::reconnect(Way way, const std::string& why) { end_of(way).link.reconnect(why); }

bool Database::both_up() const { return is_up(Way::work) && is_up(Way::watch); }

bool Database::is_turned_away() const { return work_->link.is_turned_away() || watch_->link.is_turned_away(); }

Line::Standing Database::standing() const {
  Standing standing;
  const Session* session = work_->link.session();
  standing.server = session == nullptr ? address_.text() : work_->link.server();
  for (const End* end : {work_.get(), watch_.get()}) {
    if (!end->link.is_up() && standing.trouble.empty()) standing.trouble = end->trouble;
  }
  standing.listens = listens_;
  standing.pooled = work_->pooled || watch_->pooled;
  standing.encrypted = session != nullptr && !session->tls().empty();
  standing.round_trip = watch_->link.round_trip();
  standing.waited = work_->link.waited();
  return standing;
}

void Database::connected(Way way) {
  End& end = end_of(way);
  end.link.ask({"SELECT pg_catalog.pg_backend_pid()", {}}, [this, &end](const Answer& answer) {
    if (!answer) return end.link.refuse(answer.error().message);
    judge_pooler(end, answer);
    if (end.way == Way::watch && !end.pooled) return listen_to_all(end);
    greet(end);
  });
}

void Database::judge_pooler(End& end, const Answer& answer) {
  end.pooled = answer->number(0, 0) != end.link.session()->server_process();
  if (!end.pooled) end.link.prepare_statements();
}

void Database::listen_to_all(End& end) {
  std::string script = "LISTEN " + quoted(probe_channel_);
  for (const std::string& channel : channels_) script += ";LISTEN " + quoted(channel);
  end.link.ask({script, {}, true}, [this, &end](const Answer& answer) {
    if (!answer) return end.link.refuse(answer.error().message);
    greet(end);
  });
}

void Database::greet(End& end) {
  if (!events_.greet) return end.link.accept();
  Ask ask = lifetime_.bind([this, &end](std::string_view function, std::vector<Argument> arguments, Done done) {
    end.link.ask(function_call(schema_, function, std::move(arguments)), std::move(done));
  });
  // A verdict about a connection that broke meanwhile is none about the next one.
  Verdict verdict = lifetime_.bind([&end, greeted = end.link.connection()](const std::optional<std::string>& refusal) {
    if (end.link.connection() != greeted) return;
    if (refusal) {
      end.link.refuse(*refusal);
    } else {
      end.link.accept();
    }
  });
  events_.greet(end.way, std::move(ask), std::move(verdict));
}

void Database::went_up(End& end) {
  end.trouble.clear();
  if (!both_up()) return;
  told_up_ = true;
  told_trouble_.clear();
  probe();
  if (events_.up) events_.up();
}

void Database::went_down(End& end, const std::string& why) {
  end.trouble = why;
  if (end.way == Way::watch) listens_ = false;
  probe_timer_.cancel();
  if (!std::exchange(told_up_, false) && why == told_trouble_) return;
  told_trouble_ = why;
  if (events_.down) events_.down(why);
}

void Database::heard(const std::string& channel, const std::string& payload) {
  if (channel != probe_channel_) {
    if (events_.notified) events_.notified(channel, payload);
    return;
  }
  if (payload != probe_token_) return;
  listens_ = true;
  probe_timer_.cancel();
}

void Database::probe() {
  if (watch_->pooled || work_->pooled) return;
  probe_token_ = random_token();
  work_->link.ask({"SELECT pg_catalog.pg_notify($1, $2)", {probe_channel_, probe_token_}}, [](const Answer&) {});
  probe_timer_ = loop_.after(options_.probe_wait, [this] {
    listens_ = false;
    probe_timer_ = loop_.after(options_.probe_again, [this] {
      if (both_up()) probe();
    });
  });
}

void Database::inquire(const End& about, int process, std::function<void(std::optional<bool>)> answer) {
  if (about.pooled) return;  // nobody knows
  other_than(about).link.ask({"SELECT state FROM pg_catalog.pg_stat_activity WHERE pid = $1", {argument_of(process)}},
                             [answer = std::move(answer)](const Answer& told) { answer(works(told)); });
}

}  // namespace duet::task::postgres
