// What it costs to take a request apart, by library: nanoseconds for a ping, a request of some 170 bytes, and 1 MB of
// params as one string and as many small values. Each way has to find the method and the id.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "duet/rpc/message.h"

#ifdef DUET_BENCH_SIMDJSON
#include <simdjson.h>
#endif

namespace {

struct Found {
  std::size_t method = 0;
  std::size_t id = 0;
};

using Way = std::function<Found(std::string_view)>;  // there are 64 readable bytes behind the text

Found by_duet(std::string_view text) {
  const duet::rpc::Message message = duet::rpc::decode(text, duet::rpc::Batches::allowed);
  return {message.method.size(), message.id.size()};
}

Found by_boost(std::string_view text) {
  static std::array<unsigned char, 16 * 1024> buffer;
  boost::json::monotonic_resource memory(buffer.data(), buffer.size());
  const boost::json::value value = boost::json::parse(text, &memory);
  const boost::json::object& object = value.as_object();
  return {object.at("method").as_string().size(), object.contains("id") ? 1U : 0U};
}

#ifdef DUET_BENCH_SIMDJSON
Found by_simdjson_dom(std::string_view text) {
  static simdjson::dom::parser parser;
  const simdjson::dom::element message = parser.parse(text.data(), text.size(), false);
  return {std::string_view(message["method"]).size(), message["id"].error() == simdjson::SUCCESS ? 1U : 0U};
}

void walk(simdjson::ondemand::value value) {
  switch (value.type()) {
    case simdjson::ondemand::json_type::object:
      for (auto member : value.get_object()) {
        (void)std::string_view(member.unescaped_key());
        walk(member.value());
      }
      break;
    case simdjson::ondemand::json_type::array:
      for (auto element : value.get_array()) walk(element.value());
      break;
    case simdjson::ondemand::json_type::string:
      (void)std::string_view(value.get_string());
      break;
    case simdjson::ondemand::json_type::number:
      (void)value.get_number().value();
      break;
    case simdjson::ondemand::json_type::boolean:
      (void)bool(value.get_bool());
      break;
    case simdjson::ondemand::json_type::null:
      (void)value.is_null();
      break;
  }
}

template <typename Other>
Found by_simdjson_members(std::string_view text, Other other) {
  static simdjson::ondemand::parser parser;
  auto document = parser.iterate(text.data(), text.size(), text.size() + simdjson::SIMDJSON_PADDING);
  Found found;
  for (auto member : document.get_object()) {
    const std::string_view name = member.unescaped_key();
    if (name == "method") {
      found.method = std::string_view(member.value().get_string()).size();
    } else if (name == "id") {
      found.id = std::string_view(member.value().raw_json_token()).size();
    } else {
      other(member);
    }
  }
  return found;
}

// Reads the members it needs and skips params; what is skipped is not validated beyond its brackets and strings.
Found by_simdjson_on_demand(std::string_view text) {
  return by_simdjson_members(text, [](auto& /*member*/) {});
}

// The same, but every value is read, so that all of the text is validated.
Found by_simdjson_walk(std::string_view text) {
  return by_simdjson_members(text, [](auto& member) { walk(member.value()); });
}
#endif

std::string many_values(std::size_t bytes) {
  std::string text = R"({"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"files":[)";
  for (int i = 0; text.size() < bytes; ++i) {
    if (i > 0) text += ',';
    text += R"({"name":"src/file)" + std::to_string(i) + R"(.cpp","line":)" + std::to_string(i * 7) +
            R"(,"open":true,"weight":0.25})";
  }
  return text + "]}}";
}

double nanoseconds(const Way& way, std::string_view text) {
  using Clock = std::chrono::steady_clock;
  const std::size_t times = std::max<std::size_t>(1, 2'000'000 / text.size());
  std::vector<double> rounds;
  for (int round = 0; round < 31; ++round) {
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < times; ++i) {
      const Found found = way(text);
      if (found.method < 4 || found.id == 0) throw std::runtime_error("method or id was not found");
    }
    rounds.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                     static_cast<double>(times));
  }
  std::nth_element(rounds.begin(), rounds.begin() + 15, rounds.end());
  return rounds[15];
}

}  // namespace

int main() {
  const std::vector<std::pair<const char*, Way>> ways{
      {"duet::rpc::decode", by_duet},
      {"Boost.JSON, parse", by_boost},
#ifdef DUET_BENCH_SIMDJSON
      {"simdjson, DOM", by_simdjson_dom},
      {"simdjson, On-Demand, params skipped", by_simdjson_on_demand},
      {"simdjson, On-Demand, all read", by_simdjson_walk},
#endif
  };
  const std::vector<std::string> texts{
      R"({"jsonrpc":"2.0","id":123456789,"method":"ping"})",
      R"({"jsonrpc":"2.0","method":"task.submit","params":{"prompt":"Fix the failing tests in src/parser","agent":)"
      R"("test-engineer","priority":5,"tags":["tests","parser"],"dry":false},"id":"a3f9c2"})",
      R"({"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"text":")" + std::string(1'000'000, 'x') + "\"}}",
      many_values(1'000'000),
  };
  std::printf("%-38s%12s%12s%14s%14s\n", "ns, median of 31", "ping", "170 bytes", "1 MB string", "1 MB values");
  for (const auto& [name, way] : ways) {
    std::printf("%-38s", name);
    for (int column = 0; const std::string& text : texts) {
      const std::string padded = text + std::string(64, ' ');
      std::printf("%*.*f", column < 2 ? 12 : 14, column < 2 ? 1 : 0, nanoseconds(way, {padded.data(), text.size()}));
      ++column;
    }
    std::printf("\n");
  }
}
