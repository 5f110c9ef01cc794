#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/mcp/task_answers.h"

namespace duet::app::mcp {

/// The ends of outputs of tasks that have ended: nothing is written there any more, so that whoever asks for such a
/// task again needs to be told its record only. A few; the one that was used longest ago goes first.
class TailCache {
 public:
  static constexpr std::size_t most = 64;

  bool contains(std::string_view task, std::int64_t tail_bytes) const { return find(task, tail_bytes) != nullptr; }

  /// None if the task of this record has run again since, or its output has gone.
  const OutputPart* find(const boost::json::object& record, std::int64_t tail_bytes) const {
    const Entry* const entry = find(id_of(record), tail_bytes);
    return entry != nullptr && entry->end == end_of(record) ? &entry->part : nullptr;
  }

  void keep(const boost::json::object& record, std::int64_t tail_bytes, const OutputPart& part) {
    if (!has_ended(record) || !part.done) return;
    const std::string task(id_of(record));
    std::erase_if(entries_, [&](const Entry& entry) { return entry.task == task; });
    entries_.push_front({task, tail_bytes, end_of(record), part});
    if (entries_.size() > most) entries_.pop_back();
  }

 private:
  struct Entry {
    std::string task;
    std::int64_t tail_bytes;
    boost::json::array end;
    OutputPart part;
  };

  // What differs when a task has run again, or its output was removed.
  static boost::json::array end_of(const boost::json::object& record) {
    boost::json::array end;
    for (const std::string_view name : {"state", "completedAt", "attempts", "outputDropped"}) {
      const boost::json::value* const found = record.if_contains(name);
      end.push_back(found != nullptr ? *found : boost::json::value());
    }
    return end;
  }

  const Entry* find(std::string_view task, std::int64_t tail_bytes) const {
    const auto found = std::ranges::find_if(
        entries_, [&](const Entry& entry) { return entry.task == task && entry.tail_bytes == tail_bytes; });
    return found != entries_.end() ? &*found : nullptr;
  }

  std::list<Entry> entries_;
};

}  // namespace duet::app::mcp
