#include "bridge/work_progress.h"

#include <exception>
#include <optional>

#include <boost/json/value.hpp>

#include "bridge/json_members.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

constexpr std::size_t most_characters = 100;

std::string short_text(std::string_view text) { return std::string(rpc::first_characters(text, most_characters)); }

// A message says more than a percentage.
std::string standing_of(const boost::json::value& value) {
  const std::string_view message = text_member(value, "message");
  if (!message.empty()) return short_text(message);
  const boost::json::value* const percentage = member(value, "percentage");
  return percentage != nullptr && percentage->is_number() ? rpc::to_text(*percentage) + " %" : std::string();
}

std::optional<boost::json::value> tree_of(std::string_view params) {
  try {
    return rpc::parse_value(params);
  } catch (const std::exception&) {
    return std::nullopt;  // nested beyond all reason
  }
}

}  // namespace

void WorkProgress::take(std::string_view params) {
  const auto tree = tree_of(params);
  if (!tree) return;
  const boost::json::value* const token = member(*tree, "token");
  const boost::json::value* const value = member(*tree, "value");
  if (token == nullptr || value == nullptr) return;
  const std::string name = rpc::to_text(*token);
  const std::string_view kind = text_member(*value, "kind");
  if (kind == "end") {
    works_.erase(name);
  } else if (kind == "begin" && works_.size() < most_works) {
    works_[name] = {short_text(text_member(*value, "title")), standing_of(*value)};
  } else if (const auto known = works_.find(name); kind == "report" && known != works_.end()) {
    if (std::string standing = standing_of(*value); !standing.empty()) known->second.standing = std::move(standing);
  }
}

std::string WorkProgress::text() const {
  if (works_.empty()) return {};
  const Work& work = works_.begin()->second;
  if (work.title.empty()) return work.standing.empty() ? "working" : work.standing;
  return work.standing.empty() ? work.title : work.title + ' ' + work.standing;
}

}  // namespace duet::bridge
