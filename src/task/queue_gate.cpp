#include "task/queue_gate.h"

#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/value.h"

namespace duet::task {
namespace {

namespace json = boost::json;

constexpr std::string_view pause_prefix = "queue/pause/";
constexpr std::string_view hold_prefix = "agent/hold/";

std::string name_with(std::string_view prefix, std::string_view name) {
  return std::string(prefix) + std::string(name);
}

// Empty if it is damaged: then it was not said.
json::object read_object(std::string_view text) {
  if (!rpc::is_valid_json(text)) return {};
  const json::value parsed = rpc::parse_value(text);
  return parsed.is_object() ? parsed.get_object() : json::object();
}

base::UtcTime time_in(const json::object& saved, std::string_view name) {
  return base::UtcTime(std::chrono::milliseconds(saved.at(name).to_number<std::int64_t>()));
}

std::string hold_text(const QueueGate::Hold& hold) {
  rpc::ObjectText text;
  text.add("until", base::milliseconds_of(hold.until)).add("since", base::milliseconds_of(hold.since));
  text.add("task", hold.task).add("text", hold.text);
  return text.take();
}

void tell_released(StoreWriter& writer, const std::string& agent, std::string_view by) {
  writer.forget(name_with(hold_prefix, agent));
  rpc::ObjectText params;
  params.add("agent", agent).add("by", by);
  writer.tell("agentReleased", 0, std::move(params));
}

}  // namespace

QueueGate::QueueGate(transport::Loop& loop, Store& store, const TaskSettings& settings, std::function<void()> opened)
    : loop_(loop), store_(store), settings_(settings.groups), opened_(std::move(opened)) {
  for (const auto& [name, group] : settings_) pauses_[name].now = group.paused;
}

void QueueGate::load() {
  std::vector<std::string> outdated;
  const auto read = store_.read([this, &outdated](StoreReader& reader) {
    reader.each_remembered(pause_prefix, [this, &outdated](std::string_view name, std::string_view value) {
      if (!load_pause(name.substr(pause_prefix.size()), value)) outdated.emplace_back(name);
    });
    reader.each_remembered(hold_prefix, [this](std::string_view name, std::string_view value) {
      load_hold(name.substr(hold_prefix.size()), value);
    });
  });
  if (!read) throw rpc::Error(read.error());
  for (const std::string& name : outdated) {
    store_.write({.apply = [name](StoreWriter& writer) { writer.forget(name); }, .kind = Change::Kind::patient_fact});
  }
  look_at_holds();
}

// False: it counts no more. The settings have the last word if they were changed since.
bool QueueGate::load_pause(std::string_view name, std::string_view value) {
  const json::object saved = read_object(value);
  if (!saved.contains("paused") || !saved.contains("setting")) return false;
  if (saved.at("setting") != setting_of(name)) return false;
  const bool paused = saved.at("paused") == true;
  pauses_[std::string(name)].now = paused;
  return true;
}

void QueueGate::load_hold(std::string_view agent, std::string_view value) {
  const json::object saved = read_object(value);
  if (!saved.contains("until") || !saved.contains("since") || !saved.contains("task")) return;
  Hold hold{.until = time_in(saved, "until"), .since = time_in(saved, "since")};
  hold.task = saved.at("task").to_number<TaskId>();
  if (const json::value* text = saved.if_contains("text")) hold.text = text->as_string();
  // The clock on the wall may have been set since: it is not held longer than it was to be.
  const base::Duration left = std::min<base::Duration>(hold.until - loop_.clock().utc(), hold.until - hold.since);
  hold.latest = loop_.now() + left;
  holds_[std::string(agent)] = std::move(hold);
}

bool QueueGate::setting_of(std::string_view group) const {
  const auto found = settings_.find(group);
  return found != settings_.end() && found->second.paused;
}

void QueueGate::change_settings(const TaskSettings& settings) {
  const auto before = std::exchange(settings_, settings.groups);
  const auto paused_before = [&before](const std::string& name) {
    const auto found = before.find(name);
    return found != before.end() && found->second.paused;
  };
  std::vector<std::string> names;
  names.reserve(before.size() + settings_.size());
  for (const auto& [name, group] : before) names.push_back(name);
  for (const auto& [name, group] : settings_) names.push_back(name);
  for (const std::string& name : names) {
    const bool paused = setting_of(name);
    if (paused == paused_before(name) || pauses_[name].wanted() == paused) continue;
    write_pause(name, paused, true, [](bool /*kept*/) {});
  }
}

bool QueueGate::is_closed(std::string_view name) const {
  const auto found = pauses_.find(name);
  return found != pauses_.end() && (found->second.now || found->second.wanted());
}

std::vector<std::string> QueueGate::paused_groups() const {
  std::vector<std::string> names;
  for (const auto& [name, pause] : pauses_) {
    if (name != whole_queue && is_closed(name)) names.push_back(name);
  }
  return names;
}

void QueueGate::write_pause(const std::string& name, bool paused, bool by_settings,
                            std::function<void(bool kept)> done) {
  const std::uint64_t number = ++pauses_written_;
  pauses_[name].on_its_way[number] = paused;
  Change change{.kind = by_settings ? Change::Kind::fact : Change::Kind::request};
  change.apply = [name, paused, setting = setting_of(name), by_settings](StoreWriter& writer) {
    if (paused == setting) {
      writer.forget(name_with(pause_prefix, name));
    } else {
      rpc::ObjectText value;
      value.add_json("paused", paused ? "true" : "false").add_json("setting", setting ? "true" : "false");
      writer.remember(name_with(pause_prefix, name), value.take());
    }
    rpc::ObjectText params;
    if (!name.empty()) params.add("group", name);
    if (by_settings) params.add("by", "settings");
    writer.tell(paused ? "queuePaused" : "queueResumed", 0, std::move(params));
  };
  change.done = lifetime_.bind([this, name, number, paused, done = std::move(done)](bool kept) {
    Pause& known = pauses_[name];
    known.on_its_way.erase(number);
    if (kept) known.now = paused;
    if (!is_closed(name)) opened_();
    done(kept);
  });
  store_.write(std::move(change));
}

void QueueGate::set_paused(const std::optional<std::string>& group, bool paused, Changed changed) {
  const std::string name = group.value_or(std::string(whole_queue));
  if (pauses_[name].wanted() == paused) {
    // It is certain when what was asked for before is on disk.
    return store_.after_changes(lifetime_.bind([this, name, paused, changed = std::move(changed)] {
      if (pauses_[name].now == paused) return changed(false);
      changed(tl::unexpected(store_.refusal()));
    }));
  }
  write_pause(name, paused, false, [this, changed = std::move(changed)](bool kept) {
    if (kept) return changed(true);
    changed(tl::unexpected(store_.refusal()));
  });
}

std::function<void(StoreWriter&)> QueueGate::hold(const std::string& agent, Hold hold) {
  hold.latest = loop_.now() + (hold.until - loop_.clock().utc());
  const auto known = holds_.find(agent);
  const bool is_held = known != holds_.end() && !known->second.releasing;
  if (is_held && known->second.until >= hold.until) return [](StoreWriter&) {};
  holds_[agent] = hold;
  look_later();
  return [agent, hold](StoreWriter& writer) {
    writer.remember(name_with(hold_prefix, agent), hold_text(hold));
    rpc::ObjectText params;
    params.add("agent", agent).add("until", base::utc_text(hold.until)).add("taskId", to_text(hold.task));
    params.add("text", hold.text);
    writer.tell("agentHeld", 0, std::move(params));
  };
}

void QueueGate::release(const std::string& agent, Changed changed) {
  const auto found = holds_.find(agent);
  if (found == holds_.end()) {
    return store_.after_changes([changed = std::move(changed)] { changed(false); });
  }
  if (found->second.releasing) {  // somebody else has asked for it
    return store_.after_changes(
        lifetime_.bind([this, agent, changed = std::move(changed)] { release(agent, changed); }));
  }
  found->second.releasing = true;
  Change change{.apply = [agent](StoreWriter& writer) { tell_released(writer, agent, "request"); }};
  change.done = lifetime_.bind([this, agent, changed = std::move(changed)](bool kept) {
    // Another task may have met the limit since: that hold is a new one.
    const auto held = holds_.find(agent);
    const bool is_the_same = held != holds_.end() && held->second.releasing;
    if (is_the_same) held->second.releasing = false;
    if (!kept) return changed(tl::unexpected(store_.refusal()));
    if (is_the_same) holds_.erase(held);
    opened_();
    changed(true);
  });
  store_.write(std::move(change));
}

void QueueGate::end_hold(const std::string& agent) {
  holds_.erase(agent);
  store_.write(
      {.apply = [agent](StoreWriter& writer) { tell_released(writer, agent, "time"); }, .kind = Change::Kind::fact});
}

void QueueGate::look_at_holds() {
  timer_.cancel();
  std::vector<std::string> over;
  for (const auto& [agent, hold] : holds_) {
    const bool is_over = loop_.clock().utc() >= hold.until || loop_.now() >= hold.latest;
    if (is_over && !hold.releasing) over.push_back(agent);
  }
  for (const std::string& agent : over) end_hold(agent);
  look_later();
  if (!over.empty()) opened_();
}

void QueueGate::look_later() {
  if (holds_.empty()) return;
  base::Duration next = between_looks;
  for (const auto& [agent, hold] : holds_) {
    if (hold.releasing) continue;
    next = std::min<base::Duration>({next, hold.until - loop_.clock().utc(), hold.latest - loop_.now()});
  }
  timer_ = loop_.after(std::max(next, base::Duration::zero()), [this] { look_at_holds(); });
}

}  // namespace duet::task
