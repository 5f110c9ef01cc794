// Parameters of any list and any JSON: never a crash, errors only of the one kind, and the same by name and by
// position.
//
// The input is a list (a byte that says how many, then three bytes for each parameter) and the params of a request.

#include "duet/rpc/params.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/rpc/error.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "require.h"

namespace {

using duet::rpc::Param;
using duet::rpc::Params;
using duet::rpc::Type;

constexpr std::array<const char*, 8> names = {"a", "b", "level", "é", "", "\"", "\n", "id"};

std::vector<Param> list_from(std::string_view& input) {
  const auto take = [&input] {
    const auto byte = input.empty() ? 0U : static_cast<unsigned char>(input[0]);
    if (!input.empty()) input.remove_prefix(1);
    return byte;
  };
  std::vector<Param> list;
  for (unsigned count = take() % 6; count > 0; --count) {
    Param param;
    param.name = names[take() % names.size()];
    param.type = static_cast<Type>(take() % 7);
    const unsigned more = take();
    param.required = more % 2 == 0;
    if (param.type == Type::text && more % 3 == 0) param.accepted = {"debug", "é", ""};
    const auto same = [&](const Param& other) { return other.name == param.name; };
    if (std::none_of(list.begin(), list.end(), same)) list.push_back(param);
  }
  return list;
}

// The params, or the data of the refusal.
struct Outcome {
  std::optional<Params> params;
  std::string refusal;
};

Outcome checked(const std::vector<Param>& list, std::string_view raw) {
  try {
    return {Params(list, raw), ""};
  } catch (const duet::rpc::Error& error) {
    require(error.code() == duet::rpc::code::invalid_params, "only -32602 is thrown");
    require(duet::rpc::is_valid_json(error.data()), "its data is valid JSON");
    return {std::nullopt, error.data()};
  }
}

void use(const std::vector<Param>& list, const Params& params) {
  for (const Param& param : list) {
    const bool there = params.has(param.name);
    require(there || !param.required, "a required parameter is there");
    switch (param.type) {
      case Type::text:
        require(params.text(param.name).has_value() == there, "a text is a text");
        break;
      case Type::integer:
        require(params.integer(param.name).has_value() == there, "an integer is one");
        break;
      case Type::number:
        require(params.number(param.name).has_value() == there, "a number is one");
        break;
      case Type::boolean:
        require(params.boolean(param.name).has_value() == there, "a boolean is one");
        break;
      case Type::object:
        require(params.value(param.name).is_object() == there, "an object is one");
        break;
      case Type::array:
        require(params.value(param.name).is_array() == there, "an array is one");
        break;
      case Type::any:
        params.value(param.name);
        break;
    }
  }
  params.value();
}

void compare(const std::vector<Param>& list, std::string_view by_position) {
  std::string by_name;
  std::size_t index = 0;
  duet::rpc::for_each_element(by_position, [&](std::string_view value) {
    if (index == list.size()) return false;
    by_name += by_name.empty() ? '{' : ',';
    duet::rpc::append_string(by_name, list[index++].name);
    by_name.append(":").append(value);
    return true;
  });
  by_name += by_name.empty() ? "{}" : "}";
  const Outcome one = checked(list, by_position);
  const Outcome other = checked(list, by_name);
  require(one.refusal == other.refusal, "by name and by position the same is refused");
  if (!one.params) return;
  for (const Param& param : list) {
    require(one.params->slice(param.name) == other.params->slice(param.name),
            "by name and by position the same is there");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::vector<Param> list = list_from(input);
  const duet::rpc::Envelope envelope = duet::rpc::scan_envelope(input);
  const bool is_group =
      envelope.shape == duet::rpc::Envelope::Shape::object || envelope.shape == duet::rpc::Envelope::Shape::array;
  if (!is_group || envelope.too_deep) return 0;
  input.remove_prefix(input.find_first_of("[{"));  // as a request's params slice has it
  input = input.substr(0, input.find_last_of("]}") + 1);
  const Outcome outcome = checked(list, input);
  if (outcome.params) use(list, *outcome.params);
  if (input[0] == '[') compare(list, input);
  return 0;
}
