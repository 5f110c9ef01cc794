#include "automation/memory.h"

#include <charconv>
#include <exception>

#include <boost/json/parse.hpp>

#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

std::optional<std::uint64_t> number_in(const std::optional<std::string>& text) {
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool whole = error == std::errc{} && end == text->data() + text->size();
  return whole ? std::optional(number) : std::nullopt;
}

constexpr const char* unreadable_switch =
    "automation is off, since what it knew cannot be read; `duet-rpc automation enable` begins anew";
constexpr const char* unreadable_firing = "a firing that was kept cannot be read, and is not listed";

void take(Memory& memory, std::optional<Firing> firing) {
  if (firing) {
    memory.firings.push_back(std::move(*firing));
  } else {
    memory.faults.emplace_back(unreadable_firing);
  }
}

// Throws if it is anything else.
void read_old_text(Memory& memory, const json::object& saved) {
  memory.enabled = saved.at("enabled").as_bool();
  const json::object& firings = saved.at("firings").as_object();
  memory.last_firing = firings.at("lastId").to_number<std::uint64_t>();
  for (const json::value& firing : firings.at("list").as_array()) take(memory, load_listed_firing(firing));
  for (const auto& [id, rule] : saved.at("rules").as_object()) memory.rules[std::string(id)] = rpc::to_text(rule);
}

// All in one transaction, so that nothing is there twice or not at all.
Note taking_over(const Memory& memory) {
  Note note;
  note.forget(name::old_text);
  note.remember(name::enabled, memory.enabled ? "true" : "false");
  note.remember(name::last_firing, std::to_string(memory.last_firing));
  for (const Firing& firing : memory.firings) note.keep(firing);
  for (const auto& [id, text] : memory.rules) note.remember(name::of_rule(id), text);
  return note;
}

Memory read_new_names(task::StoreReader& reader) {
  Memory memory;
  const std::optional<std::string> enabled = reader.recall(name::enabled);
  memory.enabled = !enabled || *enabled == "true";
  if (enabled && *enabled != "true" && *enabled != "false") memory.faults.emplace_back(unreadable_switch);
  memory.position = number_in(reader.recall(name::position));
  memory.numbers = reader.recall(name::numbers).value_or("");
  memory.last_firing = number_in(reader.recall(name::last_firing)).value_or(0);
  reader.each_remembered(firing_names,
                         [&](std::string_view key, std::string_view value) { take(memory, load_firing(key, value)); });
  reader.each_remembered(name::rules, [&](std::string_view key, std::string_view value) {
    memory.rules.emplace(key.substr(name::rules.size()), value);
  });
  return memory;
}

}  // namespace

std::string name::of_rule(std::string_view id) { return std::string(rules).append(id); }

tl::expected<Memory, rpc::Error> recall_memory(task::Store& store) {
  return store.read([](task::StoreReader& reader) {
    const std::optional<std::string> old_text = reader.recall(name::old_text);
    if (!old_text) return read_new_names(reader);
    Memory memory;
    try {
      read_old_text(memory, json::parse(*old_text).as_object());
      memory.taking_over = taking_over(memory);
    } catch (const std::exception&) {
      memory = Memory{.enabled = false, .faults = {unreadable_switch}};  // it may have said that rules are off
    }
    return memory;
  });
}

}  // namespace duet::automation
