#include "app/client/wait_progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/view/display_text.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "duet/base/fd.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

constexpr std::size_t most_named = 3;
constexpr std::string_view wipe_line = "\r\x1b[K";

// A terminal that cannot be written to any more shows nothing, and the command goes on.
void put_progress(int fd, const std::string& text) { [[maybe_unused]] const bool written = base::write_all(fd, text); }

int stage_of(const object& task) { return has_ended(task) ? 2 : member_text(task, "state") == "running" ? 1 : 0; }

std::string named_task(const object& task, base::UtcTime now) {
  const std::string id = member_text(task, "id");
  const std::string time = run_time_of(task, now);
  return time.empty() ? id : id + " for " + time;
}

}  // namespace

std::string progress_line(const std::vector<object>& tasks, base::UtcTime now) {
  const auto done = static_cast<std::size_t>(std::ranges::count_if(tasks, has_ended));
  if (done == tasks.size()) return {};
  std::string running;
  std::size_t count = 0;
  for (const object& task : tasks) {
    if (member_text(task, "state") != "running") continue;
    if (++count <= most_named) running += (running.empty() ? "" : ", ") + named_task(task, now);
  }
  if (count > most_named) running += " and " + std::to_string(count - most_named) + " more";
  const std::size_t queued = tasks.size() - done - count;
  std::string out = std::to_string(done) + " of " + std::to_string(tasks.size()) + " done";
  if (count > 0) out += "; running: " + running;
  if (queued > 0) out += "; " + std::to_string(queued) + " queued";
  return out;
}

bool note_progress(object& task, const object& told) {
  if (member_text(task, "id") != member_text(told, "taskId") || !told.contains("state")) return false;
  for (const auto& member : told) {
    if (boost::json::value* const known = task.if_contains(member.key())) *known = member.value();
  }
  return true;
}

WaitProgress::WaitProgress(DaemonClient& daemon, int fd) : daemon_(daemon), fd_(fd), on_terminal_(isatty(fd) == 1) {
  daemon_.client().on_any([this](std::string_view /*event*/, std::string_view params) { take(params); });
  if (on_terminal_) tick();
}

WaitProgress::~WaitProgress() {
  hide();
  daemon_.client().on_any([](std::string_view, std::string_view) {});
}

// What is told behind the record may be here before it is added.
void WaitProgress::add(const object& record) {
  tasks_.push_back(record);
  if (stage_of(told_of_next_) > stage_of(record)) note_progress(tasks_.back(), told_of_next_);
  next_.clear();
}

void WaitProgress::expect(const std::string& id) {
  next_ = id;
  told_of_next_ = {};
}

const object* WaitProgress::find_ended(const std::string& id) const {
  const auto found = std::ranges::find_if(
      tasks_, [&](const object& task) { return member_text(task, "id") == id && has_ended(task); });
  return found == tasks_.end() ? nullptr : &*found;
}

void WaitProgress::take(std::string_view params) {
  const boost::json::value parsed = rpc::parse_value(params);
  if (!parsed.is_object()) return;
  if (!next_.empty() && member_text(parsed.get_object(), "taskId") == next_) told_of_next_ = parsed.get_object();
  for (object& task : tasks_) {
    if (note_progress(task, parsed.get_object())) show();
  }
}

void WaitProgress::hide() {
  if (!std::exchange(shown_, false)) return;
  put_progress(fd_, std::string(wipe_line));
}

void WaitProgress::show() {
  if (!on_terminal_) return;
  const std::string text = progress_line(tasks_, base::system_clock().utc());
  if (text.empty()) return hide();
  const std::size_t width = terminal_width(fd_).value_or(80);
  put_progress(fd_, std::string(wipe_line) + cut_to_width(text, width - 1));
  shown_ = true;
}

void WaitProgress::tick() {
  show();
  next_tick_ = daemon_.client().loop().after(std::chrono::seconds(1), [this] { tick(); });
}

}  // namespace duet::app
