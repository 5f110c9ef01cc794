// Parameters of any JSON: never a crash, errors only of the one kind, the same by name and by position, and what was
// read and written again is read the same.
//
// The input is a byte that chooses a struct, and the params of a request.

#include "duet/rpc/params.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include "duet/rpc/error.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "require.h"

namespace {

using duet::rpc::Param;

enum class Level { debug, info };
BOOST_DESCRIBE_ENUM(Level, debug, info)

struct Inner {
  std::string a;
  std::int8_t b = 1;
  std::optional<std::vector<Inner>> id;
};
BOOST_DESCRIBE_STRUCT(Inner, (), (a, b, id))

struct Scalars {
  std::string a;
  std::int64_t b;
  Level level = Level::info;
  std::optional<bool> id;
  std::optional<double> c;
  std::optional<std::uint64_t> d;
};
BOOST_DESCRIBE_STRUCT(Scalars, (), (a, b, level, id, c, d))

struct Groups {
  std::vector<std::string> a;
  std::map<std::string, std::int32_t> b;
  std::optional<Inner> level;
  std::optional<duet::rpc::Json> id;
  std::optional<boost::json::value> c;
  std::optional<std::vector<Level>> d;
};
BOOST_DESCRIBE_STRUCT(Groups, (), (a, b, level, id, c, d))

// What was read, written again; or the data of the refusal.
struct Outcome {
  bool fits = false;
  std::string text;
};

template <typename Struct>
Outcome read(const std::vector<Param>& list, std::string_view raw) {
  try {
    Struct value{};
    duet::rpc::read_params(list, raw, value);
    return {true, std::string(duet::rpc::Json(value).text())};
  } catch (const duet::rpc::Error& error) {
    require(error.code() == duet::rpc::code::invalid_params, "only -32602 is thrown");
    require(duet::rpc::is_valid_json(error.data()), "its data is valid JSON");
    return {false, error.data()};
  }
}

std::string by_name(const std::vector<Param>& list, std::string_view by_position) {
  std::string text;
  std::size_t index = 0;
  duet::rpc::for_each_element(by_position, [&](std::string_view value) {
    if (index == list.size()) return false;
    text += text.empty() ? '{' : ',';
    duet::rpc::append_string(text, list[index++].name);
    text.append(":").append(value);
    return true;
  });
  return text.empty() ? "{}" : text + "}";
}

template <typename Struct>
void check(std::string_view raw) {
  static const std::vector<Param> list = duet::rpc::describe_params<Struct>();
  const Outcome outcome = read<Struct>(list, raw);
  if (raw[0] == '[') {
    const Outcome other = read<Struct>(list, by_name(list, raw));
    require(outcome.fits == other.fits && outcome.text == other.text, "by name and by position it is the same");
  }
  if (!outcome.fits) return;
  require(duet::rpc::is_valid_json(outcome.text), "what is written is JSON");
  const Outcome again = read<Struct>(list, outcome.text);
  require(again.fits, "what was written is read");
  const Outcome third = read<Struct>(list, again.text);  // a number beyond all doubles is null by then, and so absent
  require(third.fits && third.text == again.text, "what was written is read the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const bool scalars = input[0] % 2 == 0;
  const std::size_t begin = input.find_first_of("[{");
  if (begin == std::string_view::npos) return 0;
  input.remove_prefix(begin);  // as a request's params slice has it
  input = input.substr(0, input.find_last_of("]}") + 1);
  const duet::rpc::Envelope envelope = duet::rpc::scan_envelope(input);
  const bool is_group =
      envelope.shape == duet::rpc::Envelope::Shape::object || envelope.shape == duet::rpc::Envelope::Shape::array;
  if (!is_group || envelope.too_deep) return 0;
  scalars ? check<Scalars>(input) : check<Groups>(input);
  return 0;
}
