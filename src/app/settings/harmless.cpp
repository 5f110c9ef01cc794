#include "app/settings/harmless.h"

#include <algorithm>
#include <string>
#include <utility>

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text harmless[] = {
    "max_running", "queue_capacity", "watch.paths", "watch.ignore", "watch.gitignore",
};

constexpr Text harmful[] = {
    "default_agent",    // a prompt would go to somebody else
    "agents",           // programs
    "rules",            // start agents by themselves
    "lsp",              // programs, and their environment
    "daemon",           // for the user's own files only
    "mcp",              // likewise
    "http",             // opens a door, and says which names count as this machine
    "tls",              // for the user's own files only
    "store",            // whoever has the queue gives this machine its tasks, and gets all prompts
    "cluster",          // says what others may run here
    "keep_days",        // these three would delete tasks and outputs for good
    "keep_tasks",       //
    "keep_output",      //
    "groups",           // could undo a pause or a bound of the user's own
    "watch.max_chain",  // could undo the guard against rules that wake each other
};

bool is_harmless(Text name) { return std::ranges::find(harmless, name) != std::end(harmless); }

bool is_above_harmless(Text name) {
  const std::string above = std::string(name) + '.';
  return std::ranges::any_of(harmless, [&](Text known) { return known.starts_with(above); });
}

bool remove_below(Setting& setting, const std::string& prefix) {
  auto* const table = std::get_if<Setting::Table>(&setting.value);
  if (table == nullptr) return false;  // what must be a table and is not is a fault, and tells itself
  bool removed = false;
  std::erase_if(*table, [&](NamedSetting& entry) {
    const std::string name = prefix + entry.name;
    if (is_harmless(name)) return false;
    if (is_above_harmless(name)) {
      removed = remove_below(entry.setting, name + '.') || removed;
      return false;
    }
    return removed = true;
  });
  return removed;
}

}  // namespace

std::span<const Text> harmless_settings() { return harmless; }
std::span<const Text> harmful_settings() { return harmful; }

bool remove_harmful(Setting& top) { return remove_below(top, ""); }

}  // namespace duet::app
