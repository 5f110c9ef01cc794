#include "duet/rpc/params.h"

#include <algorithm>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"

namespace duet::rpc {
namespace {

constexpr std::size_t shown_characters = 64;

Json accepted_json(const Param& param) { return param.accepted.empty() ? Json() : Json(param.accepted); }

bool is_of(Type type, std::string_view json_name) {
  return type == Type::any || json_name == name_of(type) || (type == Type::integer && json_name == "number");
}

void slice_by_position(std::string_view raw, std::span<std::string_view> slices) {
  std::size_t index = 0;
  for_each_element(raw, [&](std::string_view value) {
    if (index == slices.size()) return false;
    slices[index++] = value;
    return true;
  });
}

void slice_by_name(std::span<const Param> list, std::string_view raw, std::span<std::string_view> slices) {
  for_each_member(raw, [&](std::string_view name, std::string_view value) {
    const auto found = std::ranges::find(list, name, &Param::name);
    if (found != list.end()) slices[static_cast<std::size_t>(found - list.begin())] = value;
    return true;
  });
}

}  // namespace

void slice_params(std::span<const Param> list, std::string_view raw, std::span<std::string_view> slices) {
  if (list.empty()) return;
  if (raw.starts_with('[')) slice_by_position(raw, slices);
  if (raw.starts_with('{')) slice_by_name(list, raw, slices);
}

Error missing_param(const Param& param) {
  return invalid_params(param.name, name_of(param.type), "missing", accepted_json(param));
}

Error wrong_param(const Param& param, std::string_view slice, std::string_view expected) {
  const std::string_view received = json_type(slice);
  if (!is_of(param.type, received)) {
    return invalid_params(param.name, name_of(param.type), received, accepted_json(param));
  }
  if (received != name_of(Type::text)) return invalid_params(param.name, expected, received, accepted_json(param));
  if (param.accepted.empty()) return invalid_params(param.name, expected, received);
  const std::string word = decode_string(slice);
  return invalid_params(param.name, expected, first_characters(word, shown_characters), accepted_json(param));
}

}  // namespace duet::rpc
