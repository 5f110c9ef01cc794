#include "app/methods/test_methods.h"

#ifdef DUET_TEST_METHODS

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "duet/rpc/json_read.h"

namespace duet::app {
namespace {

using peer::Reply;
using rpc::Json;

constexpr std::string_view awake = R"({"slept":true})";
constexpr std::chrono::milliseconds between_looks{1};

[[noreturn]] void block_for_ever() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

bool is_there(const std::string& file) { return access(file.c_str(), F_OK) == 0; }

void answer_when_there(transport::Loop& loop, std::string file, std::shared_ptr<Reply<>> reply) {
  if (is_there(file)) return reply->ok(Json::view(awake));
  loop.after(between_looks,
             [&loop, file = std::move(file), reply = std::move(reply)]() mutable {
               answer_when_there(loop, std::move(file), std::move(reply));
             })
      .detach();
}

[[noreturn]] void throw_something() { throw std::runtime_error("a \"quoted\"\nreason"); }
// NOLINTNEXTLINE(bugprone-exception-escape): that is what it is for
[[noreturn]] void throw_where_nobody_catches() noexcept { throw_something(); }

int sink_deeper(int depth) {  // NOLINT(misc-no-recursion)
  std::array<volatile char, 4096> room;
  room[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : sink_deeper(depth + 1) + room[0];
}

std::int64_t sum_of(const Json& params) {
  const auto numbers = params.as<std::vector<std::int64_t>>();
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

void add_methods_of_the_specification(peer::Methods& methods) {
  methods
      .add("subtract", "", {"minuend", "subtrahend"},
           [](std::int64_t minuend, std::int64_t subtrahend) { return minuend - subtrahend; })
      .unlisted();
  methods.add("sum", sum_of).unlisted();
  methods.add("get_data", [] { return Json::view(R"(["hello",5])"); }).unlisted();
  for (const char* const name : {"update", "notify_hello", "notify_sum"}) methods.add(name, [] {}).unlisted();
}

}  // namespace

void add_test_methods(peer::Methods& methods, transport::Loop& loop) {
  add_methods_of_the_specification(methods);
  methods.add("test.block", block_for_ever).unlisted();
  methods
      .add("test.sleep", "", {"ms"},
           [](std::int64_t ms) {
             std::this_thread::sleep_for(std::chrono::milliseconds(ms));
             return Json::view(awake);
           })
      .unlisted();
  methods
      .add("test.await", "", {"file"},
           [](const std::string& file) {
             while (!is_there(file)) std::this_thread::sleep_for(between_looks);
             return Json::view(awake);
           })
      .unlisted();
  methods
      .add("test.await_late", "", {"file"},
           [&loop](const std::string& file, Reply<> reply) { answer_when_there(loop, file, shared(std::move(reply))); })
      .unlisted();
  methods.add("test.throw", [] { throw std::runtime_error("secret detail"); }).unlisted();

  methods
      .add("test.defect",
           [&loop] {
             loop.defer([] { throw std::runtime_error("nobody expects this"); });
             return Json::view(R"({"deferred":true})");
           })
      .unlisted();
  methods.add("test.abort", [] { std::abort(); }).unlisted();
  methods.add("test.uncaught", throw_where_nobody_catches).unlisted();
  methods.add("test.overflow", [] { return sink_deeper(1); }).unlisted();

  methods
      .add("test.block_late",
           [](Reply<> reply) { std::thread([kept = shared(std::move(reply))] { block_for_ever(); }).detach(); })
      .unlisted();
  methods
      .add("test.sleep_late", "", {"ms"},
           [&loop](std::int64_t ms, Reply<> reply) {
             loop.at(loop.now() + std::chrono::milliseconds(ms),
                     [kept = shared(std::move(reply))] { kept->ok(Json::view(awake)); })
                 .detach();
           })
      .unlisted();
}

}  // namespace duet::app

#endif
