#include "app/log/trace.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/message.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::value;

constexpr std::size_t longest_shown = 64 * 1024;
constexpr std::size_t env_position = 5;  // in task.submit's list of params

void hide_values(value& env) {
  if (boost::json::object* const members = env.if_object()) {
    for (auto& member : *members) member.value() = "...";
  } else {
    env = "...";
  }
}

void hide_secrets(value& message) {
  if (boost::json::array* const batch = message.if_array()) {
    for (value& member : *batch) hide_secrets(member);
    return;
  }
  boost::json::object* const object = message.if_object();
  value* const params = object != nullptr ? object->if_contains("params") : nullptr;
  if (params == nullptr) return;
  if (boost::json::object* const named = params->if_object()) {
    if (value* const env = named->if_contains("env")) hide_values(*env);
  } else if (boost::json::array* const listed = params->if_array()) {
    if (listed->size() > env_position) hide_values((*listed)[env_position]);
  }
}

/// What stands before a secret that lets somebody in, and how many characters such a one has. Others have codes, too:
/// of these only those that have just as many are hidden.
struct Mark {
  std::string_view before;
  std::size_t least;
  std::size_t most;
};
constexpr std::array<Mark, 3> marks{
    {{"duet_", 43, std::string::npos}, {"login=", 22, std::string::npos}, {R"("code":")", 22, 22}}};

// Tokens and login codes, wherever they stand.
std::string without_keys(std::string text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (const Mark& mark : marks) {
    for (std::size_t at = text.find(mark.before); at != text.npos; at = text.find(mark.before, at)) {
      at += mark.before.size();
      const std::size_t end = std::min(text.find_first_not_of(letters, at), text.size());
      if (end - at >= mark.least && end - at <= mark.most) text.replace(at, end - at, "...");
    }
  }
  return text;
}

class TracedChannel final : public transport::Channel {
 public:
  TracedChannel(std::unique_ptr<transport::Channel> channel, base::Log& log, std::uint64_t number)
      : channel_(std::move(channel)), log_(log), number_(number) {}

  void open(Listener& listener) override { channel_->open(listener); }
  void want(bool reading, bool writing) override { channel_->want(reading, writing); }
  void end_output() override { channel_->end_output(); }
  void close() override { channel_->close(); }

  transport::IoResult read(std::span<char> into) override {
    const transport::IoResult moved = channel_->read(into);
    if (moved.state == transport::IoResult::State::some) follow(in_, {into.data(), moved.count});
    return moved;
  }
  transport::IoResult write(std::string_view bytes) override {
    const transport::IoResult moved = channel_->write(bytes);
    if (moved.state == transport::IoResult::State::some) follow(out_, bytes.substr(0, moved.count));
    return moved;
  }

 private:
  // One direction, with the line that has begun.
  struct Direction {
    std::string_view name;
    std::string line = {};
    std::size_t size = 0;
  };

  void follow(Direction& way, std::string_view bytes) {
    for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos; bytes.remove_prefix(end + 1)) {
      keep(way, bytes.substr(0, end));
      show(way);
    }
    keep(way, bytes);
  }

  static void keep(Direction& way, std::string_view part) {
    way.size += part.size();
    if (way.line.size() <= longest_shown) way.line.append(part.substr(0, longest_shown + 1));
  }

  void show(Direction& way) {
    const std::string line = std::exchange(way.line, {});
    const std::size_t size = std::exchange(way.size, 0);
    if (size == 0) return;
    const std::string shown = size > longest_shown ? std::string() : without_secrets(line);
    const std::string number = number_ == 0 ? std::string() : std::to_string(number_);
    log_.write(base::Level::trace, way.name,
               {{"connection", base::JsonText{number}}, {"bytes", size}, {"message", base::WholeJson{shown}}});
  }

  std::unique_ptr<transport::Channel> channel_;
  base::Log& log_;
  std::uint64_t number_;
  Direction in_{"received"};
  Direction out_{"sent"};
};

}  // namespace

bool trace_wanted(const char* value) { return value != nullptr && *value != '\0' && std::string_view(value) != "0"; }

std::string without_secrets(std::string_view message) {
  const rpc::Message decoded = rpc::decode(message, rpc::Batches::allowed);
  if (!decoded.is_json) return {};
  const bool may_hold_secrets =
      decoded.kind != rpc::Message::Kind::response &&
      (message.find("env") != std::string_view::npos || message.find("task.submit") != std::string_view::npos ||
       message.find("\\u") != std::string_view::npos);
  if (!may_hold_secrets) return without_keys(std::string(message));
  try {
    value tree = rpc::parse_value(message);
    hide_secrets(tree);
    return without_keys(rpc::to_text(tree));
  } catch (const std::length_error&) {
    return {};
  }
}

std::unique_ptr<transport::Channel> traced(std::unique_ptr<transport::Channel> channel, base::Log& log,
                                           std::uint64_t number) {
  return std::make_unique<TracedChannel>(std::move(channel), log, number);
}

}  // namespace duet::app
