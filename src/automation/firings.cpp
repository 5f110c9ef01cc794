#include "automation/firings.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include <boost/json/parse.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

constexpr std::string_view id_prefix = "firing-";

std::optional<std::uint64_t> number_after(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number > 0 && text.front() != '0' ? std::optional(number) : std::nullopt;
}

// Throws if it is anything else.
Firing read_firing(const json::object& saved) {
  const auto text = [&](std::string_view name) { return std::string(saved.at(name).as_string()); };
  Firing firing{.rule_id = text("ruleId"), .reason = text("reason"), .task_id = text("taskId")};
  firing.at = base::UtcTime(std::chrono::milliseconds(saved.at("at").to_number<std::int64_t>()));
  firing.count = saved.at("count").to_number<std::size_t>();
  firing.approved = saved.contains("approved");
  firing.asked = saved.contains("asked");
  if (const json::value* turn = saved.if_contains("turn")) firing.turn = turn->to_number<std::uint64_t>();
  if (const json::value* cause = saved.if_contains("cause")) firing.cause = cause->as_string();
  if (const json::value* by = saved.if_contains("by")) firing.by = by->as_string();
  if (const json::value* links = saved.if_contains("links")) firing.links = links->as_array();
  if (const json::value* work = saved.if_contains("awaiting")) firing.awaiting = load_work(work->as_object());
  return firing;
}

}  // namespace

std::string id_of(const Firing& firing) { return std::string(id_prefix) + std::to_string(firing.number); }
std::string name_of(const Firing& firing) { return std::string(firing_names) + std::to_string(firing.number); }

std::string save_firing(const Firing& firing) {
  json::object saved{{"ruleId", firing.rule_id},
                     {"at", base::milliseconds_of(firing.at)},
                     {"count", firing.count},
                     {"reason", firing.reason},
                     {"taskId", firing.task_id}};
  if (firing.awaiting) saved["awaiting"] = save_work(*firing.awaiting);
  if (firing.approved) saved["approved"] = true;
  if (firing.asked) saved["asked"] = true;
  if (firing.turn > firing.number) saved["turn"] = firing.turn;
  if (!firing.cause.empty()) saved["cause"] = firing.cause;
  if (!firing.by.empty()) saved["by"] = firing.by;
  if (!firing.links.empty()) saved["links"] = firing.links;
  return rpc::to_text(saved);
}

std::optional<Firing> load_firing(std::string_view name, std::string_view text) {
  const std::optional<std::uint64_t> number = number_after(firing_names, name);
  if (!number) return std::nullopt;
  try {
    Firing firing = read_firing(json::parse(text).as_object());
    firing.number = *number;
    if (firing.turn == 0) firing.turn = firing.number;
    return firing;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<Firing> load_listed_firing(const json::value& saved) {
  try {
    Firing firing = read_firing(saved.as_object());
    firing.turn = firing.number = number_after(id_prefix, saved.at("id").as_string()).value();
    return firing;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Firings::put(Firing firing) {
  if (Firing* known = find(firing.number)) {
    *known = std::move(firing);
    return;
  }
  firings_.push_front(std::move(firing));
  drop_too_many();
}

void Firings::load(std::vector<Firing> firings, std::uint64_t last_number) {
  std::ranges::sort(firings, std::greater<>(), &Firing::number);
  firings_.assign(std::make_move_iterator(firings.begin()), std::make_move_iterator(firings.end()));
  last_ = std::max(last_number, firings_.empty() ? 0 : firings_.front().number);
  last_turn_ = last_;
  for (const Firing& firing : firings_) last_turn_ = std::max(last_turn_, firing.turn);
  drop_too_many();
}

void Firings::put_back(const std::vector<std::string>& dropped) {
  for (const std::string& name : dropped) dropped_.push_back({name});
}

void Firings::drop_too_many() {
  if (firings_.size() > most_kept) drop(firings_.size() - most_kept, false);
  const bool newest_waits = !firings_.empty() && firings_.front().awaiting;
  const std::size_t room = newest_waits ? most_kept : most_kept + 1;
  if (firings_.size() > room) drop(firings_.size() - room, true);
}

// The newest stays. There may be very many.
void Firings::drop(std::size_t count, bool waiting) {
  std::map<std::string_view, std::vector<const Firing*>> of_rule;  // the oldest last
  for (const Firing& firing : firings_) {
    const bool needed = firing.approved || firing.deciding || &firing == &firings_.front();
    if (!needed && firing.awaiting.has_value() == waiting) of_rule[firing.rule_id].push_back(&firing);
  }
  std::priority_queue<std::pair<std::size_t, std::string_view>> busiest;
  for (const auto& [rule, its] : of_rule) busiest.emplace(its.size(), rule);
  std::set<std::uint64_t> going;
  for (; count > 0 && !busiest.empty(); --count) {
    const std::string_view rule = busiest.top().second;
    busiest.pop();
    std::vector<const Firing*>& its = of_rule[rule];
    going.insert(its.back()->number);
    if (!its.back()->unsaved) dropped_.push_back({name_of(*its.back()), waiting});
    its.pop_back();
    if (!its.empty()) busiest.emplace(its.size(), rule);
  }
  std::erase_if(firings_, [&going](const Firing& firing) { return going.contains(firing.number); });
}

Firing* Firings::find(std::uint64_t number) {
  const auto found = std::ranges::find(firings_, number, &Firing::number);
  return found == firings_.end() ? nullptr : &*found;
}

Firing* Firings::find(std::string_view id) {
  const std::optional<std::uint64_t> number = number_after(id_prefix, id);
  return number ? find(*number) : nullptr;
}

std::optional<base::UtcTime> Firings::last_fired(std::string_view rule_id) const {
  const Firing* last = nullptr;
  for (const Firing& firing : firings_) {
    if (firing.rule_id != rule_id || firing.held()) continue;
    if (last == nullptr || firing.turn > last->turn) last = &firing;
  }
  return last == nullptr ? std::nullopt : std::optional(last->at);
}

json::array Firings::awaiting() const {
  json::array ids;
  for (const Firing& firing : firings_) {
    if (firing.awaits_approval()) ids.emplace_back(id_of(firing));
  }
  return ids;
}

json::array Firings::shown(std::string_view rule_id) const {
  json::array list;
  for (const Firing& firing : firings_) {
    if (!firing.kept || (!rule_id.empty() && firing.rule_id != rule_id)) continue;
    json::object entry{{"id", id_of(firing)},
                       {"ruleId", firing.rule_id},
                       {"at", base::utc_text(firing.at)},
                       {"outcome", firing.held() ? "held" : "fired"},
                       {"count", firing.count}};
    if (firing.held()) entry["reason"] = firing.reason;
    if (!firing.task_id.empty()) entry["taskId"] = firing.task_id;
    if (!firing.cause.empty()) entry["cause"] = firing.cause;
    if (firing.awaiting) entry["would"] = shown_work(*firing.awaiting);
    if (!firing.links.empty()) entry["links"] = firing.links;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace duet::automation
