#include "duet/base/log.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "duet/base/blocked_signals.h"
#include "duet/base/clock.h"
#include "duet/base/log_sink.h"

namespace duet::base {

/// The queue and the thread that empties it. The thread shares ownership, so it may outlive the log.
///
/// The clock belongs to others: it is used only under the mutex and while the writer is not abandoned.
class Log::Writer : public std::enable_shared_from_this<Writer> {
 public:
  Writer(std::unique_ptr<LogSink> sink, std::size_t queue_bytes, Clock& clock)
      : sink_(std::move(sink)), queue_bytes_(queue_bytes), clock_(clock), format_(sink_->coloured()) {
    notice_.reserve(128);  // so that the thread cannot fail for want of memory
  }

  void enqueue(Level level, std::string_view message, Fields fields) noexcept {
    const std::lock_guard guard(mutex_);
    if (closed_) return;
    const std::size_t before = pending_.size();
    bool accepted = false;
    try {
      if (!thread_.joinable()) start();
      format_.append(pending_, clock_.utc(), level, message, fields);
      accepted = pending_.size() + in_flight_.load(std::memory_order_relaxed) <= queue_bytes_;
    } catch (...) {
      // No memory or no thread: a dropped line like any other.
    }
    if (!accepted) drop_from(before);
    if (!std::exchange(busy_, true) || is_filling()) filled_.notify_one();
  }

  bool flush(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    if (!thread_.joinable()) return lost_ == 0;
    ++hurry_;
    filled_.notify_one();
    const bool drained = clock_.wait(lock, drained_, clock_.now() + limit, [this] { return !busy_; });
    --hurry_;
    return drained;
  }

  void refuse_lines() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
  }

  void stop(bool drained) {
    std::thread thread;
    {
      const std::lock_guard guard(mutex_);
      if (!thread_.joinable()) return;
      thread = std::move(thread_);
      stopping_ = true;
      abandoned_ = !drained;
    }
    filled_.notify_one();
    drained ? thread.join() : thread.detach();
  }

 private:
  static constexpr std::size_t kept_buffer = 64 * 1024;
  static constexpr std::size_t backlog = 32 * 1024;
  static constexpr std::size_t max_joined = 4096;  // PIPE_BUF: what a pipe with several writers keeps together
  static constexpr std::chrono::milliseconds nap_time{2};

  void start() {
    const BlockedSignals blocked;
    thread_ = std::thread([self = shared_from_this()] { self->run(); });
  }

  void drop_from(std::size_t size) {
    pending_.resize(size);
    if (lost_++ == 0) gap_ = size;
  }

  void run() {
    pthread_setname_np(pthread_self(), "duet-log");
    std::unique_lock lock(mutex_);
    while (await_work(lock)) {
      const std::size_t gap = lost_ > 0 ? gap_ : pending_.size();
      const std::uint64_t lost = std::exchange(lost_, 0);
      batch_.swap(pending_);
      in_flight_ = batch_.size();
      lock.unlock();
      write_batch(batch_, gap, lost);
      batch_.clear();
      lock.lock();
      nap(lock);
    }
  }

  /// To be woken costs the thread that logs ten times as much as to leave a line, so a busy one does it rarely.
  void nap(std::unique_lock<std::mutex>& lock) {
    filled_.wait_for(lock, nap_time, [this] { return hurry_ > 0 || stopping_ || is_filling(); });
  }

  bool is_filling() const { return pending_.size() > queue_bytes_ / 2; }

  /// False: this thread shall end.
  bool await_work(std::unique_lock<std::mutex>& lock) {
    if (pending_.empty() && lost_ == 0) {
      busy_ = false;
      drained_.notify_all();
      release_memory();
      filled_.wait(lock, [this] { return busy_ || stopping_; });
    }
    return busy_ && !abandoned_;
  }

  /// A burst of lines is no reason to keep its memory for ever.
  void release_memory() {
    for (std::string* buffer : {&pending_, &batch_}) {
      if (buffer->capacity() > kept_buffer) std::string().swap(*buffer);
    }
  }

  void write_batch(std::string_view batch, std::size_t gap, std::uint64_t lost) {
    write_lines(batch.substr(0, gap));
    missing_ += lost;
    write_lines(batch.substr(gap));
    report_missing();
  }

  void write_lines(std::string_view lines) {
    const bool joins = sink_->joins_lines() || lines.size() > backlog;
    while (!lines.empty() && !abandoned_) {
      const auto piece = lines.substr(0, joins ? last_line_end(lines) : first_line_end(lines));
      const std::size_t written = report_missing() ? hand_over(piece) : 0;
      missing_ += static_cast<std::uint64_t>(std::ranges::count(piece.substr(written), '\n'));
      in_flight_.fetch_sub(piece.size(), std::memory_order_relaxed);
      lines.remove_prefix(piece.size());
    }
  }

  static std::size_t first_line_end(std::string_view lines) { return lines.find('\n') + 1; }

  static std::size_t last_line_end(std::string_view lines) {
    const auto end = lines.rfind('\n', max_joined - 1);
    return end == lines.npos ? first_line_end(lines) : end + 1;
  }

  std::size_t hand_over(std::string_view lines) noexcept {
    try {
      return sink_->write(lines);
    } catch (...) {
      return 0;
    }
  }

  /// True if nothing is missing from the log that it does not say itself.
  bool report_missing() {
    if (missing_ == 0) return true;
    notice_.clear();
    {
      const std::lock_guard guard(mutex_);
      if (abandoned_) return false;
      format_.append(notice_, clock_.utc(), Level::warn, "Log lines were dropped", {{"dropped", missing_}});
    }
    if (hand_over(notice_) < notice_.size()) return false;
    missing_ = 0;
    return true;
  }

  const std::unique_ptr<LogSink> sink_;
  const std::size_t queue_bytes_;
  Clock& clock_;

  std::mutex mutex_;
  std::condition_variable filled_;
  std::condition_variable drained_;
  LineFormat format_;
  std::string pending_;     // whole lines
  std::uint64_t lost_ = 0;  // lines that found the queue full ...
  std::size_t gap_ = 0;     // ... from this place in pending_ on
  int hurry_ = 0;           // threads that wait in flush()
  bool busy_ = false;       // the thread has, or will find, something to do
  bool closed_ = false;
  bool stopping_ = false;
  std::thread thread_;

  std::atomic<bool> abandoned_ = false;
  std::atomic<std::size_t> in_flight_ = 0;  // bytes taken from pending_ and not yet written

  // The thread's own.
  std::string batch_;
  std::string notice_;
  std::uint64_t missing_ = 0;  // lines lost and not yet reported
};

Log::Log(std::unique_ptr<LogSink> sink, Level level, LogLimits limits)
    : Log(std::move(sink), level, limits, system_clock()) {}

Log::Log(std::unique_ptr<LogSink> sink, Level level, LogLimits limits, Clock& clock)
    : level_(level),
      limits_(limits),
      writer_(sink ? std::make_shared<Writer>(std::move(sink), limits.queue_bytes, clock) : nullptr) {}

Log::~Log() { close(); }

void Log::enqueue(Level level, std::string_view message, Fields fields) noexcept {
  if (writer_) writer_->enqueue(level, message, fields);
}

bool Log::flush(std::chrono::milliseconds limit) { return !writer_ || writer_->flush(limit); }

bool Log::close() noexcept {
  if (!writer_) return true;
  writer_->refuse_lines();
  const bool drained = writer_->flush(limits_.flush);
  writer_->stop(drained);
  return drained;
}

}  // namespace duet::base
