#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "automation/firings.h"
#include "task/store_tables.h"

namespace duet::automation {

/// What the engine writes at once: values under names, and the events that tell of it. It is made on the loop's thread
/// and written, as often as it takes, on the one that commits; it holds nothing but its own copies.
class Note {
 public:
  void remember(std::string name, std::string value) { values_.emplace_back(std::move(name), std::move(value)); }
  void forget(std::string name) { values_.emplace_back(std::move(name), std::nullopt); }
  /// What goes along with whatever is written next.
  struct Along {
    std::vector<std::string> dropped = {};  ///< the names of firings to forget
    std::vector<std::uint64_t> held = {};   ///< the numbers of firings
  };
  void forget_firing(std::string name) { along_.dropped.push_back(std::move(name)); }
  void keep_along(const Firing& held) {
    held_.push_back(held);
    along_.held.push_back(held.number);
  }
  const Along& along() const { return along_; }
  /// With the id of the task that is written together with it, if there is one.
  void keep(const Firing& firing) { firings_.push_back(firing); }
  /// Likewise.
  void tell(std::string_view kind, boost::json::object params) { told_.emplace_back(kind, std::move(params)); }

  bool is_empty() const { return values_.empty() && along_.dropped.empty() && firings_.empty() && told_.empty(); }
  /// Roughly, of memory.
  std::size_t bytes() const;
  /// `task`: 0 if there is none.
  void write(task::StoreWriter& writer, task::TaskId task) const;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> values_;
  Along along_;
  std::vector<Firing> held_;
  std::vector<Firing> firings_;
  std::vector<std::pair<std::string, boost::json::object>> told_;
};

}  // namespace duet::automation
