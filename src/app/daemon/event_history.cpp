#include "app/daemon/event_history.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/json/parse.hpp>

#include "duet/base/process_tree.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::size_t event_bytes = sizeof(Event);  // what an event costs beside its texts

std::size_t size_of(const Event& event) {
  return event_bytes + event.kind.size() + event.task_id.size() + event.params.size();
}

std::string new_epoch() {
  std::array<unsigned char, 8> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) < 0) throw std::bad_alloc();  // it cannot fail for so few
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> room;
  for (ssize_t count = 0; (count = read(fd, room.data(), room.size())) > 0;) {
    text.append(room.data(), static_cast<std::size_t>(count));
  }
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string header_line(const std::string& epoch, std::uint64_t next) {
  return rpc::to_text(value{{"epoch", epoch}, {"boot", base::boot_id()}, {"next", next}}) + '\n';
}

std::string event_line(const Event& event) {
  std::string line = R"({"seq":)" + std::to_string(event.seq) + R"(,"kind":")" + event.kind + R"(","params":)";
  return line.append(event.params).append("}\n");
}

std::string text_in(const object& fields, std::string_view name) {
  const value* const found = fields.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

std::uint64_t number_in(const object& fields, std::string_view name) {
  const value* const found = fields.if_contains(name);
  boost::json::error_code error;
  return found == nullptr ? 0 : found->to_number<std::uint64_t>(error);
}

}  // namespace

EventHistory::EventHistory(int folder, std::string name, base::Log& log, Limits limits)
    : folder_(folder), name_(std::move(name)), log_(log), limits_(limits) {
  if (!load()) {
    epoch_ = new_epoch();
    next_ = 1;
    events_.clear();
    bytes_ = 0;
  }
  write_anew();
}

bool EventHistory::load() {
  const base::Fd file(openat(folder_, name_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return false;
  const std::string text = read_all(file.get());
  std::string_view rest = text;
  bool whole = true;
  // A line without its end was being written when the daemon was killed: nobody has been told of it.
  for (std::size_t end = 0; whole && (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    whole = load_line(rest.substr(0, end));
  }
  if (!whole || epoch_.empty()) log_.warn("The history of events cannot be read; it begins anew");
  return whole && !epoch_.empty() && was_closed_;
}

bool EventHistory::load_line(std::string_view line) {
  boost::json::error_code error;
  const value parsed = boost::json::parse({line.data(), line.size()}, error);
  const object* const fields = error ? nullptr : parsed.if_object();
  if (fields == nullptr) return false;
  if (epoch_.empty()) {
    epoch_ = text_in(*fields, "epoch");
    next_ = number_in(*fields, "next");
    was_closed_ = text_in(*fields, "boot") == base::boot_id();  // the same boot: what was written is all there
    return !epoch_.empty() && next_ > 0;
  }
  if (fields->contains("closed")) return was_closed_ = true;
  const value* const params = fields->if_contains("params");
  Event event{.seq = number_in(*fields, "seq"), .kind = text_in(*fields, "kind"), .task_id = {}, .params = {}};
  const bool in_order = event.seq == next_ || (events_.empty() && event.seq > 0 && event.seq <= next_);
  if (!in_order || params == nullptr || !params->is_object()) return false;
  event.task_id = text_in(params->get_object(), "taskId");
  event.params = rpc::to_text(*params);
  next_ = event.seq + 1;
  keep(std::move(event));
  return true;
}

const Event& EventHistory::add(std::string_view kind, object params) {
  Event event{.seq = next_, .kind = std::string(kind), .task_id = text_in(params, "taskId"), .params = {}};
  params["seq"] = next_++;
  event.params = rpc::to_text(params);
  write_line(event_line(event));
  keep(std::move(event));
  if (file_ && file_bytes_ > 2 * limits_.bytes) write_anew();
  return events_.back();
}

void EventHistory::keep(Event event) {
  bytes_ += size_of(event);
  events_.push_back(std::move(event));
  while (bytes_ > limits_.bytes && events_.size() > 1) {
    bytes_ -= size_of(events_.front());
    events_.pop_front();
  }
}

void EventHistory::write_line(const std::string& line) {
  if (!file_) return;
  if (!write_all(file_.get(), line)) return give_up_file("writing");
  file_bytes_ += line.size();
}

// A file that lacks events must not be taken for the whole: the next daemon begins a new epoch.
void EventHistory::give_up_file(const char* what) {
  log_.warn("The history of events cannot be kept on disk", {{"what", what}, {"reason", std::strerror(errno)}});
  file_.reset();
  unlinkat(folder_, name_.c_str(), 0);
}

void EventHistory::write_anew() {
  const std::string temporary = name_ + ".new";
  file_.reset(openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_) return give_up_file("opening");
  std::string text = header_line(epoch_, oldest());
  for (const Event& event : events_) text += event_line(event);
  const bool written = write_all(file_.get(), text);
  if (!written || renameat(folder_, temporary.c_str(), folder_, name_.c_str()) != 0) {
    unlinkat(folder_, temporary.c_str(), 0);
    return give_up_file("writing");
  }
  file_bytes_ = text.size();
}

void EventHistory::close() {
  if (!file_) return;
  write_line("{\"closed\":true}\n");
  if (file_) fdatasync(file_.get());
  file_.reset();
}

}  // namespace duet::app
