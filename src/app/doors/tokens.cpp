#include "app/doors/tokens.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include <boost/json/object.hpp>

#include "app/doors/secrets.h"
#include "app/project/user_state.h"
#include "app/words/client_name.h"
#include "app/words/sha256.h"
#include "duet/base/fd.h"

namespace duet::app {
namespace {

constexpr std::string_view token_prefix = "duet_";
constexpr std::size_t bytes_of_token = 32;
constexpr std::size_t size_of_token = 48;
constexpr std::size_t largest_token_file = std::size_t{1} << 20U;
constexpr int subsystem_is_unavailable = -32003;

rpc::Error tokens_unavailable(const std::string& why) {
  return rpc::Error(subsystem_is_unavailable, "Subsystem unavailable: " + why,
                    boost::json::object{{"subsystem", "tokens"}});
}

// None: there is no file. The error is why it is not used.
tl::expected<std::optional<std::string>, std::string> read_token_file(int folder) {
  const base::Fd file(openat(folder, tokens_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::nullopt;
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) {
    return tl::unexpected(std::string("it cannot be opened: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return tl::unexpected(std::string("it is no plain file"));
  if (auto why = why_not_ours(status.st_uid, status.st_mode)) return tl::unexpected(std::move(*why));
  std::string text;
  std::array<char, 16384> room{};
  while (text.size() <= largest_token_file) {
    const ssize_t count = read(file.get(), room.data(), room.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return tl::unexpected(std::string("it cannot be read: ") + std::strerror(errno));
    if (count > 0) text.append(room.data(), static_cast<std::size_t>(count));
  }
  return tl::unexpected(std::string("it is larger than a megabyte"));
}

}  // namespace

Tokens::Tokens(int folder, std::string shown, Events events, TokenLimits limits)
    : folder_(folder), shown_(std::move(shown)), events_(std::move(events)), limits_(limits) {
  load();
}

void Tokens::load() {
  const auto text = read_token_file(folder_);
  const auto saved = text.and_then([](const std::optional<std::string>& found) {
    return found ? parse_token_file(*found) : tl::expected<SavedTokens, std::string>();
  });
  damaged_ = !saved;
  if (damaged_) {
    return set_problem(shown_ + '/' + tokens_name + " is not used, and nobody gets in by a token: " + saved.error() +
                       "; 'duet-rpc token revoke --all' begins anew");
  }
  browsers_ = saved->browsers;
  for (const SavedToken& token : saved->tokens) entries_.push_back(entry_of(token));
}

bool Tokens::save() {
  SavedTokens saved{.browsers = browsers_};
  for (Entry& entry : entries_) {
    entry.saved.used = entry.used;
    saved.tokens.push_back(entry.saved);
  }
  const bool done = replace_file(folder_, tokens_name, token_file_text(saved));
  set_problem(done ? "" : shown_ + '/' + tokens_name + " cannot be written: " + std::strerror(errno));
  return done;
}

void Tokens::set_problem(std::string problem) {
  if (problem == problem_) return;
  problem_ = std::move(problem);
  if (events_.on_problem) events_.on_problem(problem_);
}

std::optional<rpc::Error> Tokens::refusal() const {
  return damaged_ ? std::optional(tokens_unavailable(problem_)) : std::nullopt;
}

rpc::Error Tokens::unwritten(std::string_view what) const { return tokens_unavailable(problem_ + std::string(what)); }

Tokens::Entry Tokens::entry_of(SavedToken saved) const {
  Entry entry{.saved = std::move(saved), .admission = std::make_shared<peer::Admission>(), .used = {}};
  entry.used = entry.saved.used;
  entry.admission->door = "http";
  entry.admission->name = entry.saved.name;
  entry.admission->role = entry.saved.role;
  entry.admission->expires = end_of(entry);
  return entry;
}

std::optional<base::UtcTime> Tokens::end_of(const Entry& entry) const {
  if (!entry.saved.browser) return entry.saved.expires;
  return entry.used.value_or(entry.saved.created) + session_;
}

bool Tokens::has_ended(const Entry& entry, base::UtcTime now) const {
  const std::optional<base::UtcTime> end = end_of(entry);
  return end && *end <= now;
}

std::shared_ptr<const peer::Admission> Tokens::find(std::string_view token, base::UtcTime now) {
  if (damaged_ || token.size() != size_of_token || !token.starts_with(token_prefix)) return nullptr;
  const std::string digest = sha256(token);
  Entry* found = nullptr;
  for (Entry& entry : entries_) {
    if (is_same_secret(entry.saved.sha256, digest)) found = &entry;
  }
  if (found == nullptr || has_ended(*found, now)) return nullptr;
  note_use(*found, now);
  if (is_worth_writing(*found)) save();
  return found->admission;
}

void Tokens::note_use(Entry& entry, base::UtcTime now) const {
  entry.used = now;
  entry.admission->expires = end_of(entry);
}

std::chrono::seconds Tokens::noting_interval() const {
  constexpr int part = 100;
  return std::max<std::chrono::seconds>(session_ / part, std::chrono::minutes(1));
}

// A clock that was set back makes a difference, too.
bool Tokens::is_worth_writing(const Entry& entry) const {
  if (!entry.used || entry.used == entry.saved.used) return false;
  const auto since = *entry.used - entry.saved.used.value_or(entry.saved.created);
  return std::chrono::abs(since) >= noting_interval();
}

tl::expected<Tokens::Made, rpc::Error> Tokens::create(const std::string& name, std::string_view role,
                                                      std::optional<base::UtcTime> expires, base::UtcTime now) {
  if (const auto refused = refusal()) return tl::unexpected(*refused);
  if (!is_client_name(name)) {
    return tl::unexpected(rpc::invalid_params("name", "1 to 64 of A-Z a-z 0-9 . _ -", "other characters, or more"));
  }
  tick(now);
  if (is_taken(name)) return tl::unexpected(rpc::invalid_params("name", "a name that no token has", name));
  if (count(false) >= limits_.made) {
    return tl::unexpected(
        tokens_unavailable("there are " + std::to_string(limits_.made) + " tokens, and no more are made: revoke some"));
  }
  return add({.name = name, .role = std::string(role), .sha256 = {}, .created = now, .expires = expires}, now);
}

tl::expected<Tokens::Made, rpc::Error> Tokens::create_for_browser(std::string_view role, base::UtcTime now) {
  if (const auto refused = refusal()) return tl::unexpected(*refused);
  tick(now);
  std::string name;
  do {
    name = "browser-" + std::to_string(++browsers_);
  } while (is_taken(name));
  std::vector<Entry> ended;
  if (count(true) >= limits_.browsers) push_out_a_browser(ended);
  auto made = add({.name = name, .role = std::string(role), .sha256 = {}, .browser = true, .created = now}, now);
  tell_ended(ended);
  return made;
}

// Those that nobody has open go first.
void Tokens::push_out_a_browser(std::vector<Entry>& ended) {
  const auto oldest = std::ranges::min_element(entries_, {}, [](const Entry& entry) {
    return std::tuple(!entry.saved.browser, entry.is_held(), entry.used.value_or(entry.saved.created));
  });
  if (oldest == entries_.end()) return;
  ended.push_back(std::move(*oldest));
  entries_.erase(oldest);
}

tl::expected<Tokens::Made, rpc::Error> Tokens::add(SavedToken saved, base::UtcTime now) {
  std::string token = std::string(token_prefix) + random_text(bytes_of_token);
  saved.sha256 = sha256(token);
  entries_.push_back(entry_of(std::move(saved)));
  looked_ = now;
  if (save()) return Made{std::move(token), entries_.back().admission};
  entries_.pop_back();
  return tl::unexpected(unwritten("; no token was made"));
}

std::size_t Tokens::count(bool browsers) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [=](const Entry& entry) { return entry.saved.browser == browsers; }));
}

bool Tokens::is_taken(std::string_view name) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.saved.name == name; });
}

tl::expected<std::vector<Tokens::Listed>, rpc::Error> Tokens::list(base::UtcTime now) {
  if (const auto refused = refusal()) return tl::unexpected(*refused);
  tick(now);
  std::vector<Listed> listed;
  for (const Entry& entry : entries_) {
    listed.push_back({.name = entry.saved.name,
                      .role = entry.saved.role,
                      .browser = entry.saved.browser,
                      .created = entry.saved.created,
                      .used = entry.used,
                      .expires = end_of(entry)});
  }
  return listed;
}

tl::expected<void, rpc::Error> Tokens::revoke(std::string_view name) {
  if (const auto refused = refusal()) return tl::unexpected(*refused);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.saved.name == name; });
  if (found != entries_.end()) return end(found);
  return tl::unexpected(rpc::invalid_params("name", "the name of a token", "another"));  // it might be a token itself
}

tl::expected<void, rpc::Error> Tokens::log_out(const peer::Admission& admission) {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.admission.get() == &admission; });
  return found == entries_.end() ? tl::expected<void, rpc::Error>() : end(found);
}

tl::expected<void, rpc::Error> Tokens::end(std::vector<Entry>::iterator ended) {
  std::vector<Entry> one;
  one.push_back(std::move(*ended));
  entries_.erase(ended);
  const bool kept = save();
  const rpc::Error fault = unwritten("; the token has ended, but is good again after a restart");
  tell_ended(one);
  return kept ? tl::expected<void, rpc::Error>() : tl::unexpected(fault);
}

tl::expected<std::vector<std::string>, rpc::Error> Tokens::revoke_all() {
  const std::vector<Entry> ended = std::exchange(entries_, {});
  std::vector<std::string> names;
  names.reserve(ended.size());
  for (const Entry& entry : ended) names.push_back(entry.saved.name);
  const bool kept = save();
  if (kept) damaged_ = false;
  const rpc::Error fault = unwritten("; all tokens have ended, but are good again after a restart");
  tell_ended(ended);
  if (!kept) return tl::unexpected(fault);
  return names;
}

void Tokens::tell_ended(const std::vector<Entry>& ended) {
  if (!events_.on_ended) return;
  for (const Entry& entry : ended) events_.on_ended(entry.admission);
}

void Tokens::tick(base::UtcTime now) {
  looked_ = now;
  for (Entry& entry : entries_) {
    if (entry.saved.browser && entry.is_held()) note_use(entry, now);
  }
  std::vector<Entry> ended;
  for (Entry& entry : entries_) {
    if (has_ended(entry, now)) ended.push_back(entry);
  }
  std::erase_if(entries_, [&](const Entry& entry) { return has_ended(entry, now); });
  const bool notes = std::ranges::any_of(entries_, [&](const Entry& entry) { return is_worth_writing(entry); });
  if (!ended.empty() || notes) save();
  tell_ended(ended);
}

std::optional<base::UtcTime> Tokens::next_end() const {
  std::optional<base::UtcTime> next;
  for (const Entry& entry : entries_) {
    std::optional<base::UtcTime> due = end_of(entry);
    if (entry.saved.browser) due = std::min<base::UtcTime>(*due, looked_ + noting_interval());
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

void Tokens::set_session(std::chrono::seconds session) {
  session_ = session;
  for (Entry& entry : entries_) entry.admission->expires = end_of(entry);
}

}  // namespace duet::app
