#include "task/postgres/server_search.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace duet::task::postgres {

ServerSearch::ServerSearch(transport::Loop& loop, const StoreAddress& address, Limits limits)
    : loop_(loop), address_(address), limits_(limits) {}

void ServerSearch::begin(Done done) {
  stop();
  done_ = std::move(done);
  trouble_.clear();
  resolve_deadline_ = loop_.after(limits_.resolving, [this] {
    trouble_ = "names were not looked up in time";
    try_all();
  });
  if (!resolving_) look_up();
}

void ServerSearch::stop() {
  done_ = nullptr;
  connecting_.reset();
  resolve_deadline_.cancel();
}

void ServerSearch::look_up() {
  try {
    loop_.run_elsewhere([hosts = address_.hosts()] { return resolve(hosts); },
                        lifetime_.bind([this](base::Result<Resolved> resolved) {
                          resolving_ = false;
                          looked_up(resolved.get());
                        }));
    resolving_ = true;
  } catch (const std::system_error& error) {
    trouble_ = error.what();
    resolve_deadline_ = loop_.after(base::Duration::zero(), [this] { try_all(); });
  }
}

void ServerSearch::looked_up(Resolved resolved) {
  if (!resolve_deadline_) return;  // too late: the addresses of the last time are being tried
  resolve_deadline_.cancel();
  trouble_ = std::move(resolved.error);
  if (!resolved.candidates.empty()) candidates_ = std::move(resolved.candidates);
  try_all();
}

void ServerSearch::try_all() {
  std::stable_partition(candidates_.begin(), candidates_.end(), [&](const Candidate& candidate) {
    return std::find(silent_.begin(), silent_.end(), candidate) == silent_.end();
  });
  // Until each has been: who was passed by would else come first again, before others were tried.
  if (silent_.size() >= candidates_.size()) silent_.clear();
  next_ = 0;
  turned_away_ = 0;
  try_next();
}

void ServerSearch::try_next() {
  if (next_ == candidates_.size()) return finish(tl::unexpected(trouble_.empty() ? "no server was found" : trouble_));
  connecting_ = std::make_unique<Connecting>(
      loop_, address_, candidates_[next_], attempt_limit(),
      [this](tl::expected<PgConnection, std::string> outcome) { tried(std::move(outcome)); });
}

void ServerSearch::tried(tl::expected<PgConnection, std::string> outcome) {
  const Candidate candidate = candidates_[next_++];
  const bool was_late = connecting_->is_late();
  if (connecting_->is_turned_away()) ++turned_away_;
  connecting_.reset();
  if (outcome) return finish(Found{std::move(*outcome), candidate});
  if (was_late) pass_by(candidate);
  if (!trouble_.empty()) trouble_ += "; ";
  trouble_ += candidate.text() + ": " + outcome.error();
  try_next();
}

void ServerSearch::try_others_first() {
  if (next_ > 0 && next_ <= candidates_.size()) pass_by(candidates_[next_ - 1]);
}

void ServerSearch::pass_by(const Candidate& candidate) {
  if (std::find(silent_.begin(), silent_.end(), candidate) == silent_.end()) silent_.push_back(candidate);
}

// The addresses of one host are one server. Of several hosts another one may take us.
void ServerSearch::finish(tl::expected<Found, std::string> outcome) {
  const bool is_all = address_.hosts().size() == 1 || turned_away_ == candidates_.size();
  was_turned_away_ = !outcome && turned_away_ > 0 && is_all;
  const Done done = std::exchange(done_, nullptr);
  if (done) done(std::move(outcome));
}

base::Duration ServerSearch::attempt_limit() const {
  const std::string& text = address_.parameters().at("connect_timeout");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (seconds <= 0) return limits_.longest_attempt;
  return std::min<base::Duration>(limits_.longest_attempt, std::chrono::seconds(std::max(seconds, 2)));
}

}  // namespace duet::task::postgres
