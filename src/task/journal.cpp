#include "task/journal.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "duet/base/all_calls.h"

namespace duet::task {
namespace {

std::size_t size_of(const Event& event) { return sizeof(Event) + event.kind.size() + event.params.size(); }

}  // namespace

Journal::Journal(Store& store, Limits limits) : store_(&store), limits_(limits) {
  load();
  store_->publish_to([this](std::vector<Event> events) { publish(std::move(events)); });
}

Journal::~Journal() {
  if (store_ != nullptr) store_->publish_to({});
}

void Journal::load() {
  const auto loaded = store_->read([this](StoreReader& reader) {
    epoch_ = reader.recall("epoch").value_or("");
    reader.newest_events([this](Event event) {
      if (events_.empty()) next_ = event.seq + 1;
      bytes_ += size_of(event);
      events_.push_front(std::move(event));
      return bytes_ < limits_.bytes;
    });
    trimmed_ = oldest();
    // Those that an earlier daemon has not removed.
    reader.events_after(0, 1, [this](const Event& event) { trimmed_ = event.seq; });
  });
  if (!loaded) throw rpc::Error(loaded.error());
}

void Journal::publish(std::vector<Event> events) {
  const std::uint64_t first = next_;
  for (Event& event : events) {
    next_ = event.seq + 1;
    bytes_ += size_of(event);
    events_.push_back(std::move(event));
  }
  base::AllCalls calls;
  for (std::uint64_t seq = first; seq < next_; ++seq) {
    for (const Reader& reader : readers_) calls.make([&] { reader(at(seq)); });
  }
  make_room();
  calls.check();
}

void Journal::prepare(std::optional<std::uint64_t> first, std::function<void()> done) {
  const bool is_here = is_current_ && (!first || *first >= oldest());
  if (is_here || !reach_back_) return done();
  constexpr std::uint64_t nothing_earlier = std::numeric_limits<std::uint64_t>::max();
  reach_back_(first ? std::max<std::uint64_t>(*first, 1) : nothing_earlier, std::move(done));
}

void Journal::put_before(std::vector<Event> events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    bytes_ += size_of(*event);
    events_.push_front(std::move(*event));
  }
}

void Journal::begin_anew(std::string epoch, std::uint64_t next) {
  epoch_ = std::move(epoch);
  events_.clear();
  bytes_ = 0;
  next_ = next;
}

// The newest one stays, in memory and in the store: numbers go on from it.
void Journal::make_room() {
  while (bytes_ > limits_.bytes && events_.size() > 1) {
    bytes_ -= size_of(events_.front());
    events_.pop_front();
  }
  if (store_ == nullptr || oldest() < trimmed_ + limits_.removed_at_once) return;
  trimmed_ = oldest();
  store_->write({.apply = [oldest = trimmed_](StoreWriter& writer) { writer.trim_events(oldest); },
                 .kind = Change::Kind::patient_fact});
}

}  // namespace duet::task
