#include "app/methods/test_methods.h"

#ifdef DUET_TEST_METHODS

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using peer::Answer;
using peer::Reply;
using peer::Request;

constexpr std::string_view awake = R"({"slept":true})";

std::vector<rpc::Param> milliseconds() { return {{.name = "ms", .type = rpc::Type::integer}}; }

std::chrono::milliseconds asked(const Request& request) {
  return std::chrono::milliseconds(request.params.integer("ms").value_or(0));
}

[[noreturn]] void block_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

[[noreturn]] void throw_something() { throw std::runtime_error("a \"quoted\"\nreason"); }
// NOLINTNEXTLINE(bugprone-exception-escape): that is what it is for
[[noreturn]] void throw_where_nobody_catches() noexcept { throw_something(); }

int sink_deeper(int depth) {  // NOLINT(misc-no-recursion)
  std::array<volatile char, 4096> room;
  room[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : sink_deeper(depth + 1) + room[0];
}

peer::Method quick(std::string name, std::vector<rpc::Param> params, peer::Handler handler) {
  return {.name = std::move(name),
          .summary = {},
          .params = std::move(params),
          .handler = std::move(handler),
          .late_handler = {},
          .listed = false};
}

peer::Method late(std::string name, std::vector<rpc::Param> params, peer::LateHandler handler) {
  return {.name = std::move(name),
          .summary = {},
          .params = std::move(params),
          .handler = {},
          .late_handler = std::move(handler),
          .listed = false};
}

std::int64_t sum_of(const boost::json::array& numbers) {
  return std::accumulate(
      numbers.begin(), numbers.end(), std::int64_t{0},
      [](std::int64_t sum, const boost::json::value& number) { return sum + number.to_number<std::int64_t>(); });
}

void add_methods_of_the_specification(peer::Methods& methods) {
  methods.add(quick(
      "subtract", {{.name = "minuend", .type = rpc::Type::integer}, {.name = "subtrahend", .type = rpc::Type::integer}},
      [](const Request& request) -> Answer {
        return *request.params.integer("minuend") - *request.params.integer("subtrahend");
      }));
  methods.add(quick("sum", {}, [](const Request& request) -> Answer {
    return sum_of(rpc::parse_value(request.params.raw()).as_array());
  }));
  methods.add(quick("get_data", {}, [](const Request&) { return Answer::view(R"(["hello",5])"); }));
  for (const char* const name : {"update", "notify_hello", "notify_sum"}) {
    methods.add(quick(name, {}, [](const Request&) -> Answer { return nullptr; }));
  }
}

}  // namespace

void add_test_methods(peer::Methods& methods, transport::Loop& loop) {
  add_methods_of_the_specification(methods);
  methods.add(quick("test.block", {}, [](const Request&) -> Answer { block_for_ever(); }));
  methods.add(quick("test.sleep", milliseconds(), [](const Request& request) {
    std::this_thread::sleep_for(asked(request));
    return Answer::view(awake);
  }));
  methods.add(quick("test.throw", {}, [](const Request&) -> Answer { throw std::runtime_error("secret detail"); }));

  methods.add(quick("test.defect", {}, [&loop](const Request&) {
    loop.defer([] { throw std::runtime_error("nobody expects this"); });
    return Answer::view(R"({"deferred":true})");
  }));
  methods.add(quick("test.abort", {}, [](const Request&) -> Answer { std::abort(); }));
  methods.add(quick("test.uncaught", {}, [](const Request&) -> Answer { throw_where_nobody_catches(); }));
  methods.add(quick("test.overflow", {}, [](const Request&) -> Answer { return sink_deeper(1); }));

  methods.add(late("test.block_late", {}, [](const Request&, Reply reply) {
    auto kept = std::make_shared<Reply>(std::move(reply));
    std::thread([kept] { block_for_ever(); }).detach();
  }));
  methods.add(late("test.sleep_late", milliseconds(), [&loop](const Request& request, Reply reply) {
    loop.after(asked(request), [reply = std::move(reply)]() mutable { reply.ok(Answer::view(awake)); }).detach();
  }));
}

}  // namespace duet::app

#endif
