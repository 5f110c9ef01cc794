#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "automation/firings.h"
#include "automation/note.h"
#include "duet/rpc/error.h"
#include "task/store.h"

namespace duet::automation {

/// The names under which the engine keeps what it knows; firings and rules have one each.
namespace name {
inline constexpr const char* enabled = "automation/enabled";
inline constexpr const char* position = "automation/position";        ///< in the journal, up to which it is done
inline constexpr const char* numbers = "automation/numbers";          ///< whose number that is
inline constexpr const char* last_firing = "automation/last-firing";  ///< so that no number is given twice
inline constexpr std::string_view rules = "rule/";
inline constexpr const char* old_text = "automation";  ///< all of it, in version 0.1
std::string of_rule(std::string_view id);
}  // namespace name

/// What an engine before this one has left in the store.
struct Memory {
  bool enabled = true;
  std::optional<std::uint64_t> position = {};
  std::string numbers = {};  ///< whose numbers that is one of: see task::Queue::numbers()
  std::uint64_t last_firing = 0;
  std::vector<Firing> firings = {};
  std::map<std::string, std::string> rules = {};  ///< as Rulebook::saved() made them
  std::vector<std::string> faults = {};           ///< what cannot be read, as sentences
  std::optional<Note> taking_over = {};           ///< to be written, once: it was of version 0.1
};

/// Reads it. What cannot be understood is left out and named; if that may have been the switch, it is off.
tl::expected<Memory, rpc::Error> recall_memory(task::Store& store);

}  // namespace duet::automation
