#include "task/postgres/event_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/base/all_calls.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"
#include "task/postgres/records.h"
#include "task/time_text.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::size_t most_read = 1000;
constexpr std::size_t most_known = 4096;
constexpr base::Duration look_with_wakes = 5s;
constexpr base::Duration look_without = 1s;
constexpr base::Duration longest_placing = 1s;
constexpr base::Duration linger = 3s;

std::optional<base::UtcTime> time_in(const json::object& params, std::string_view name) {
  const std::string text = text_in(params, name);
  return text.empty() ? std::nullopt : parse_time(text);
}

}  // namespace

EventReader::EventReader(transport::Loop& loop, Line& line, Membership& membership, Journal& journal, Calls calls)
    : loop_(loop), line_(line), membership_(membership), journal_(journal), calls_(std::move(calls)) {
  journal_.set_current(false);
  journal_.fetch_with([this](std::uint64_t first, Done done) { reach_back(first, std::move(done)); });
}

void EventReader::set_wanted(bool wanted) {
  if (!wanted) {
    if (wanted_ && !lingering_) lingering_ = loop_.after(linger, [this] { end_reading(); });
    return;
  }
  lingering_.cancel();
  if (!wanted_) begin_reading();
}

void EventReader::begin_reading() {
  wanted_ = true;
  line_.listen(membership_.events_channel());
  set_timer();
  refresh();
}

void EventReader::end_reading() {
  wanted_ = false;
  line_.unlisten(membership_.events_channel());
  timer_.cancel();
  journal_.set_current(false);
  follows_ = false;
  behind_ = false;
  caught_up();
}

void EventReader::begin() {
  if (wanted_) refresh();
}

// Who waits for the journal is told in any case: while the database cannot be asked, what is here has to do.
void EventReader::reach_back(std::uint64_t first, Done done) {
  if (!line_.is_up(Line::Way::watch) || !membership_.is_joined()) return done();
  waiting_.emplace_back(first, std::move(done));
  if (journal_.is_current()) return become_current();
  refresh();
}

// Where the journal is now, with all that is committed: whoever wants to read has it numbered. What happened while
// nobody wanted it is not told.
void EventReader::refresh() {
  if (refreshing_ || !membership_.is_joined() || !line_.is_up(Line::Way::watch)) return;
  line_.call(Line::Way::watch, "number_v1", {argument_of(most_read)}, [](const Answer&) {});
  line_.call(Line::Way::watch, "read_events_state_v1", {},
             lifetime_.bind(refreshing_.until([this](const Answer& answer) {
               take_state(answer);
               placed();
             })));
}

void EventReader::take_state(const Answer& answer) {
  if (!answer) return become_current();
  const json::object told = object_of(*answer);
  const auto next = static_cast<std::uint64_t>(std::max<std::int64_t>(number_in(told, "next"), 1));
  const std::string epoch = text_in(told, "epoch");
  const bool is_other = epoch != journal_.epoch();
  const bool is_far = !journal_.is_current() && journal_.next() != next;
  const bool goes_on = std::exchange(follows_, wanted_);
  if (is_other || is_far) {
    const bool is_first = journal_.epoch().empty();
    // Who has followed the last epoch is told all of this one.
    const auto oldest = static_cast<std::uint64_t>(std::max<std::int64_t>(number_in(told, "oldest"), 1));
    journal_.begin_anew(epoch, is_other && goes_on ? std::min(oldest, next) : next);
    if (is_other && !is_first) calls_.began_anew();
  }
  journal_.set_current(wanted_);
  become_current();
  calls_.became_current();
  if (flag_in(told, "unnumbered")) membership_.number_soon();
  read_soon();  // whatever the last beat has told of the epoch: else it would be asked for without end until the next
}

void EventReader::line_is_down() {
  base::AllCalls calls;
  for (const auto& [first, done] : std::exchange(waiting_, {})) calls.make(done);
  calls.make([this] { caught_up(); });
  calls.make([this] { placed(); });
  calls.check();
}

void EventReader::after_placing(Done done) {
  if (!refreshing_) return done();
  after_placing_.push_back(std::move(done));
  if (!placing_) placing_ = loop_.after(longest_placing, [this] { placed(); });
}

void EventReader::placed() {
  placing_.cancel();
  base::call_all(std::exchange(after_placing_, {}));
}

void EventReader::catch_up(Done done) {
  if (!wanted_ || !membership_.is_joined() || !line_.is_up(Line::Way::watch)) return done();
  line_.call(Line::Way::watch, "number_v1", {argument_of(most_read)},
             lifetime_.bind([this, done = std::move(done)](const Answer& /*answer*/) {
               catching_up_.push_back(done);
               read_soon();
               if (!reading_) caught_up();
             }));
}

void EventReader::caught_up() { base::call_all(std::exchange(catching_up_, {})); }

void EventReader::become_current() {
  base::AllCalls calls;
  for (const auto& [first, done] : std::exchange(waiting_, {})) {
    // Who asks for what has yet to come is told from where on it could begin.
    const bool is_ahead = first > journal_.next() && first != UINT64_MAX;
    if ((first >= journal_.oldest() && !is_ahead) || !line_.is_up(Line::Way::watch)) {
      calls.make(done);
    } else {
      calls.make([this, from = is_ahead ? 1 : first, then = done] { fetch_before(from, then); });
    }
  }
  calls.check();
}

// A portion at a time, from the newest back, as far as the journal has room: what is published meanwhile lets go of
// what is too much, which would be fetched without end.
void EventReader::fetch_before(std::uint64_t first, const Done& done) {
  const std::uint64_t oldest = journal_.oldest();
  const std::uint64_t from = std::max<std::uint64_t>(first, oldest > most_read ? oldest - most_read : 1);
  if (oldest <= from || journal_.is_full()) return done();
  read_rows(from - 1, static_cast<std::size_t>(oldest - from), [this, first, from, oldest, done](const Answer& answer) {
    const std::vector<Event> events = answer ? events_of(*answer) : std::vector<Event>();
    const bool is_whole =
        !events.empty() && events.back().seq + 1 == oldest && events.front().seq + events.size() == oldest;
    if (journal_.oldest() != oldest) return fetch_before(first, done);  // it has begun anew meanwhile
    if (!is_whole) return done();
    const bool is_gone = events.front().seq > from;  // what is older is not kept any more
    journal_.put_before(events);
    is_gone || from <= first ? done() : fetch_before(first, done);
  });
}

// A look now and then is for wake-ups that did not come, and for questions that failed.
void EventReader::set_timer() {
  const base::Duration every = line_.standing().listens ? look_with_wakes : look_without;
  timer_ = loop_.after(every, [this] {
    set_timer();
    journal_.is_current() ? look() : refresh();
  });
}

void EventReader::look() {
  if (!wanted_ || !journal_.is_current()) return;
  if (journal_.epoch() != membership_.epoch()) return refresh();
  read_soon();
}

void EventReader::read_soon() {
  if (!wanted_ || !journal_.is_current()) return;
  again_ = static_cast<bool>(reading_);
  if (!reading_) read_on();
}

void EventReader::read_on() {
  if (!line_.is_up(Line::Way::watch)) return;
  again_ = false;
  const std::uint64_t next = journal_.next();
  read_rows(next - 1, most_read, reading_.until([this, next](const Answer& answer) {
    if (!answer) return caught_up();
    const std::vector<Event> events = events_of(*answer);
    know_all(*answer);
    calls_.before(events, lifetime_.bind(reading_.until([this, next, events] { take_read(next, events); })));
  }));
}

void EventReader::take_read(std::uint64_t next, const std::vector<Event>& events) {
  const bool is_anew = journal_.next() != next;  // it has begun so meanwhile
  base::AllCalls calls;
  if (wanted_ && !is_anew) calls.make([&] { take_events(events); });
  if (again_ || is_anew) calls.make([this] { read_soon(); });
  if (!reading_) calls.make([this] { caught_up(); });
  calls.check();
}

void EventReader::take_events(const std::vector<Event>& events) {
  const std::uint64_t next = journal_.next();
  std::vector<Event> following;
  for (const Event& event : events) {
    if (event.seq == next + following.size()) following.push_back(event);
  }
  const bool is_cut = following.size() < events.size();
  if (!following.empty()) journal_.publish(std::move(following));
  if (is_cut) {  // they went before we came to read them, or the numbers have moved on
    journal_.set_current(false);
    calls_.began_anew();
    return refresh();
  }
  behind_ = events.size() == most_read;
  again_ = again_ || behind_;
}

void EventReader::read(std::uint64_t after, std::size_t most, Told told) {
  read_rows(after, most, [this, told = std::move(told)](const Answer& answer) {
    if (!answer) return told(tl::unexpected(answer.error()));
    const std::vector<Event> events = events_of(*answer);
    know_all(*answer);
    told(events);
  });
}

void EventReader::read_rows(std::uint64_t after, std::size_t most, Line::Done got) {
  line_.call(Line::Way::watch, "read_events_v1", {argument_of(after), argument_of(most)},
             lifetime_.bind(std::move(got)));
}

std::vector<Event> EventReader::events_of(const Result& rows) {
  const int seq = rows.column("seq");
  const int kind = rows.column("kind");
  const int task = rows.column("task");
  const int params = rows.column("params");
  const int arrived = rows.column("arrived_ms");
  std::vector<Event> events;
  events.reserve(rows.rows());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    Event& event = events.emplace_back();
    event.seq = static_cast<std::uint64_t>(rows.number(row, seq).value_or(0));
    event.kind = rows.text(row, kind);
    event.task = static_cast<TaskId>(rows.number(row, task).value_or(0));
    event.params = rows.text(row, params);
    if (!event.params.ends_with('}')) event.params = "{}";  // nothing that the queue's functions write
    const std::string number = "\"seq\":" + std::to_string(event.seq) + "}";
    event.params.replace(event.params.size() - 1, 1, event.params.size() > 2 ? "," + number : number);
    if (const auto at = rows.number(row, arrived)) event.arrived_at = time_of(*at);
    if (event.arrived_at) membership_.saw_event_at(base::milliseconds_of(*event.arrived_at));
  }
  return events;
}

void EventReader::know_all(const Result& rows) {
  const int seq = rows.column("seq");
  const int task = rows.column("task");
  const int params = rows.column("params");
  const int record = rows.column("record");
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const auto id = static_cast<TaskId>(rows.number(row, task).value_or(0));
    const auto number = static_cast<std::uint64_t>(rows.number(row, seq).value_or(0));
    if (id != 0) know(id, number, rows.text(row, record), rows.text(row, params));
  }
}

// What rules ask about a task when its event comes. An event of the past hides nothing that has happened since.
void EventReader::know(TaskId id, std::uint64_t seq, std::string_view record, std::string_view params) {
  const auto parsed = [](std::string_view text) {
    return rpc::is_valid_json(text) ? rpc::parse_value(text) : json::value();
  };
  const json::value told = parsed(record);
  const json::value said = parsed(params);
  if (!known_.contains(id)) {
    if (known_order_.size() < most_known) {
      known_order_.push_back(id);
    } else {
      known_.erase(std::exchange(known_order_[known_next_], id));
      known_next_ = (known_next_ + 1) % most_known;
    }
  }
  Known& known = known_[id];
  if (seq < known.seq) return;
  known.seq = seq;
  std::optional<Task>& place = known.task;
  if (!told.is_object() || !said.is_object()) return place.reset();  // it was removed
  if (!place) place.emplace();
  Task& task = *place;
  const json::object& object = told.get_object();
  task.id = id;
  task.agent = text_in(object, "agent");
  task.group = text_in(object, "group");
  task.progress.state = static_cast<State>(number_in(object, "state"));
  task.progress.attempts = static_cast<std::uint32_t>(number_in(object, "attempts"));
  if (const auto started = time_in(said.get_object(), "startedAt")) task.progress.started_at = started;
  if (const auto code = optional_in(said.get_object(), "exitCode")) task.progress.exit_code = code;
  task.progress.signal = text_in(said.get_object(), "signal");
  const std::string metadata = text_in(object, "metadata");
  if (rpc::is_valid_json(metadata)) {
    const json::value value = rpc::parse_value(metadata);
    if (value.is_object()) task.metadata = value.get_object();
  }
}

const std::optional<Task>* EventReader::known(TaskId id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second.task;
}

}  // namespace duet::task::postgres
