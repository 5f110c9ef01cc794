#include "task/store.h"

#include "task/refusal.h"

namespace duet::task {

Store::Store(transport::Loop& loop, std::unique_ptr<StorePlace> place, Tell tell, Committer::Options options)
    : place_(std::move(place)) {
  Database writing = place_->open_writer();
  try {
    reading_.emplace(place_->open_reader());
    reader_.emplace(*reading_);
    const Committer::Reports reports{.health = std::move(tell), .events = [this](std::vector<Event> events) {
                                       if (publisher_) publisher_(std::move(events));
                                     }};
    committer_ = std::make_unique<Committer>(
        loop, std::move(writing), [this] { return place_->holds(); }, reports, options);
  } catch (const SqliteError& error) {
    throw StoreError(std::string("the store cannot be used: ") + error.what());
  }
}

Store::~Store() {
  // The last connection to close moves the log into the main file; that is the committer's.
  reader_.reset();
  reading_.reset();
}

rpc::Error Store::unreadable(const std::exception& error) { return unavailable("store", error.what()); }

rpc::Error Store::refusal() const { return unavailable("store", health().problem); }

void Store::after_changes(std::function<void()> call) {
  // One that changes nothing costs no sync, and is done in its turn.
  write({.apply = [](StoreWriter&) {}, .done = [call = std::move(call)](bool /*kept*/) { call(); }});
}

}  // namespace duet::task
