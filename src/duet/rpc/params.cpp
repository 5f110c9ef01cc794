#include "duet/rpc/params.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "duet/rpc/error.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::rpc {
namespace {

constexpr std::size_t shown_characters = 64;

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

bool fits(const Param& param, std::string_view value) {
  const std::string_view type = json_type(value);
  switch (param.type) {
    case Type::text:
      return type == "string";
    case Type::integer:
      return type == "number" && decode_integer(value).has_value();
    case Type::number:
      return type == "number" && std::isfinite(decode_number(value));
    case Type::boolean:
      return type == "boolean";
    case Type::object:
      return type == "object";
    case Type::array:
      return type == "array";
    case Type::any:
      return true;
  }
  return false;
}

std::string accepted_json(const Param& param) {
  std::string out;
  for (const std::string& value : param.accepted) {
    out += out.empty() ? '[' : ',';
    append_string(out, value);
  }
  return out.empty() ? out : out + ']';
}

// In its own spelling; nullptr: it is none of them.
const std::string* accepted_choice(const Param& param, std::string_view text) {
  const auto same = [&](const std::string& choice) { return equal_in_any_case(choice, text); };
  const auto found = std::ranges::find_if(param.accepted, same);
  return found == param.accepted.end() ? nullptr : &*found;
}

void check(const Param& param, std::string_view value) {
  const std::string_view expected = name_of(param.type);
  if (value.empty()) {
    if (param.required) throw invalid_params(param.name, expected, "missing", accepted_json(param));
    return;
  }
  if (!fits(param, value)) throw invalid_params(param.name, expected, json_type(value), accepted_json(param));
  if (param.accepted.empty()) return;
  const std::string text = decode_string(value);
  if (accepted_choice(param, text) == nullptr) {
    throw invalid_params(param.name, expected, first_characters(text, shown_characters), accepted_json(param));
  }
}

void slice_by_position(std::string_view raw, std::vector<std::string_view>& slices) {
  std::size_t index = 0;
  for_each_element(raw, [&](std::string_view value) {
    if (index == slices.size()) return false;
    slices[index++] = value;
    return true;
  });
}

void slice_by_name(std::span<const Param> list, std::string_view raw, std::vector<std::string_view>& slices) {
  for_each_member(raw, [&](std::string_view raw_name, std::string_view value) {
    const bool spelt_plainly = raw_name.find('\\') == std::string_view::npos;
    const std::string decoded = spelt_plainly ? std::string() : decode_string_inside(raw_name);
    const std::string_view name = spelt_plainly ? raw_name : decoded;
    const auto found = std::ranges::find(list, name, &Param::name);
    if (found != list.end()) slices[static_cast<std::size_t>(found - list.begin())] = value;
    return true;
  });
}

}  // namespace

std::string_view name_of(Type type) {
  switch (type) {
    case Type::text:
      return "string";
    case Type::integer:
      return "integer";
    case Type::number:
      return "number";
    case Type::boolean:
      return "boolean";
    case Type::object:
      return "object";
    case Type::array:
      return "array";
    case Type::any:
      return "any";
  }
  return "any";
}

Params::Params(std::span<const Param> list, std::string_view raw) : list_(list), raw_(raw), slices_(list.size()) {
  if (list.empty()) return;
  if (raw.starts_with('[')) slice_by_position(raw, slices_);
  if (raw.starts_with('{')) slice_by_name(list, raw, slices_);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (slices_[i] == "null" && !list[i].required) slices_[i] = {};
    check(list[i], slices_[i]);
  }
}

std::string_view Params::slice(std::string_view name) const {
  const auto found = std::ranges::find(list_, name, &Param::name);
  return found == list_.end() ? std::string_view() : slices_[static_cast<std::size_t>(found - list_.begin())];
}

std::optional<std::string> Params::text(std::string_view name) const {
  const std::string_view token = slice(name);
  if (token.empty()) return std::nullopt;
  std::string text = decode_string(token);
  const std::string* const choice = accepted_choice(*std::ranges::find(list_, name, &Param::name), text);
  return choice == nullptr ? text : *choice;
}

std::optional<std::int64_t> Params::integer(std::string_view name) const {
  const std::string_view token = slice(name);
  return token.empty() ? std::nullopt : decode_integer(token);
}

std::optional<double> Params::number(std::string_view name) const {
  const std::string_view token = slice(name);
  if (token.empty()) return std::nullopt;
  return decode_number(token);
}

std::optional<bool> Params::boolean(std::string_view name) const {
  const std::string_view token = slice(name);
  if (token.empty()) return std::nullopt;
  return token == "true";
}

boost::json::value Params::value(std::string_view name) const {
  const std::string_view token = slice(name);
  return token.empty() ? boost::json::value() : parse_value(token);
}

boost::json::value Params::value() const { return raw_.empty() ? boost::json::value() : parse_value(raw_); }

}  // namespace duet::rpc
