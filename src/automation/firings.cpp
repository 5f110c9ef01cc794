#include "automation/firings.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "duet/base/utc_text.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

std::int64_t milliseconds(base::UtcTime at) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
}

json::object saved_firing(const Firing& firing) {
  json::object saved{{"id", firing.id},       {"ruleId", firing.rule_id}, {"at", milliseconds(firing.at)},
                     {"count", firing.count}, {"reason", firing.reason},  {"taskId", firing.task_id}};
  if (firing.awaiting) saved["awaiting"] = save_work(*firing.awaiting);
  return saved;
}

Firing loaded_firing(const json::object& saved) {
  const auto text = [&](std::string_view name) { return std::string(saved.at(name).as_string()); };
  Firing firing{.id = text("id"), .rule_id = text("ruleId"), .reason = text("reason"), .task_id = text("taskId")};
  firing.at = base::UtcTime(std::chrono::milliseconds(saved.at("at").to_number<std::int64_t>()));
  firing.count = saved.at("count").to_number<std::size_t>();
  if (const json::value* work = saved.if_contains("awaiting")) firing.awaiting = load_work(work->as_object());
  return firing;
}

}  // namespace

void Firings::add(Firing firing) {
  firings_.push_front(std::move(firing));
  if (firings_.size() > most_kept) drop_one();
}

void Firings::drop_one() {
  std::map<std::string_view, std::size_t> counts;
  for (const Firing& firing : firings_) ++counts[firing.rule_id];
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::string busiest(std::max_element(counts.begin(), counts.end(), fewer)->first);
  const auto drop_oldest = [&](bool also_awaiting) {
    const auto found = std::find_if(firings_.rbegin(), firings_.rend(), [&](const Firing& firing) {
      return firing.rule_id == busiest && (also_awaiting || !firing.awaiting);
    });
    if (found == firings_.rend()) return false;
    firings_.erase(std::next(found).base());
    return true;
  };
  if (!drop_oldest(false)) drop_oldest(true);
}

Firing* Firings::find(std::string_view id) {
  const auto found = std::find_if(firings_.begin(), firings_.end(), [id](const Firing& f) { return f.id == id; });
  return found == firings_.end() ? nullptr : &*found;
}

std::optional<base::UtcTime> Firings::last_fired(std::string_view rule_id) const {
  const auto found = std::find_if(firings_.begin(), firings_.end(),
                                  [rule_id](const Firing& f) { return f.rule_id == rule_id && !f.held(); });
  return found == firings_.end() ? std::nullopt : std::optional(found->at);
}

json::array Firings::awaiting() const {
  json::array ids;
  for (const Firing& firing : firings_) {
    if (firing.awaiting && firing.kept) ids.emplace_back(firing.id);
  }
  return ids;
}

json::array Firings::shown() const {
  json::array list;
  for (const Firing& firing : firings_) {
    if (!firing.kept) continue;
    json::object entry{{"id", firing.id},
                       {"ruleId", firing.rule_id},
                       {"at", base::utc_text(firing.at)},
                       {"outcome", firing.held() ? "held" : "fired"},
                       {"count", firing.count}};
    if (firing.held()) entry["reason"] = firing.reason;
    if (!firing.task_id.empty()) entry["taskId"] = firing.task_id;
    list.push_back(std::move(entry));
  }
  return list;
}

json::object Firings::save() const {
  json::array list;
  for (const Firing& firing : firings_) list.push_back(saved_firing(firing));
  return {{"lastId", last_id_}, {"list", std::move(list)}};
}

void Firings::load(const json::object& saved) {
  std::deque<Firing> firings;
  for (const json::value& firing : saved.at("list").as_array()) firings.push_back(loaded_firing(firing.as_object()));
  last_id_ = saved.at("lastId").to_number<std::uint64_t>();
  firings_ = std::move(firings);
}

}  // namespace duet::automation
