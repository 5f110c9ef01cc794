#include "task/system_keeper_world.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "duet/base/lifetime.h"
#include "process/launch.h"
#include "process/process_tree.h"
#include "task/leftovers.h"
#include "task/output.h"

namespace duet::task {
namespace {

// What `work` gives, or what it throws.
template <typename Work>
auto attempt(Work work) -> tl::expected<decltype(work()), Hindrance> {
  try {
    return work();
  } catch (const process::LaunchError& error) {
    return tl::unexpected(Hindrance{error.error(), error.what()});
  } catch (const std::system_error& error) {
    return tl::unexpected(Hindrance{error.code().value(), error.what()});
  }
}

class FileRecord final : public KeptRecord {
 public:
  explicit FileRecord(RunRecord record) : record_(std::move(record)) {}

  const RunRecord& get() const { return record_; }
  bool lock() override { return record_.lock(); }
  tl::expected<RunRecord::State, int> read() override { return record_.try_read(); }
  tl::expected<std::string, int> read_result() override { return record_.try_read_result(); }
  int write_gone() override { return record_.write_gone() ? 0 : errno; }

 private:
  RunRecord record_;
};

class SocketLine final : public KeeperLine, transport::Loop::Watcher {
 public:
  /// `is_ours`: our nursery has forked the keeper.
  SocketLine(transport::Loop& loop, KeeperLink link, bool is_ours)
      : loop_(loop), link_(std::move(link)), is_ours_(is_ours) {}
  SocketLine(const SocketLine&) = delete;
  SocketLine& operator=(const SocketLine&) = delete;
  ~SocketLine() override = default;

  KeeperLink take_link() {
    stop_listening();
    return std::move(link_);
  }

  bool is_ours() const { return is_ours_; }
  const std::string& contact() const override { return link_.name; }
  bool listen(Listener* listener) override {
    try {
      if (listener_ == nullptr && listener != nullptr) watch_ = loop_.watch(link_.socket.get(), EPOLLIN, *this);
    } catch (const std::system_error&) {
      return false;
    }
    if (listener == nullptr) stop_listening();
    listener_ = listener;
    return true;
  }
  tl::expected<void, Hindrance> give(const Order& order, const KeptRecord& record) override {
    const auto sent = attempt([&] {
      return send_order(link_.socket.get(), order, static_cast<const FileRecord&>(record).get()) ? 0 : errno;
    });
    if (!sent) return tl::unexpected(sent.error());
    if (*sent == 0) return {};
    const bool is_dead = *sent == ECONNRESET || *sent == ENOTCONN;
    return tl::unexpected(Hindrance{is_dead ? EPIPE : *sent, "a keeper cannot be given an order"});
  }
  void tell(const Message& message) override { send_message(link_.socket.get(), message); }

 private:
  void stop_listening() {
    listener_ = nullptr;
    watch_.cancel();
  }
  void on_ready(std::uint32_t /*events*/) override {
    const auto is_there = lifetime_.watch();
    while (is_there() && listener_ != nullptr) {
      const Received received = receive_message(link_.socket.get());
      if (received.message) {
        listener_->on_message(*received.message);
      } else if (received.closed) {
        return listener_->on_closed();
      } else {
        return;
      }
    }
  }

  transport::Loop& loop_;
  KeeperLink link_;
  bool is_ours_;
  Listener* listener_ = nullptr;
  transport::Loop::Watch watch_;
  base::Lifetime lifetime_;
};

class LeftoversPursuit final : public Pursuit {
 public:
  LeftoversPursuit(transport::Loop& loop, const Fingerprint& fingerprint, std::chrono::milliseconds grace,
                   std::function<void()> done)
      : leftovers_(loop, fingerprint, grace, std::move(done)) {}

 private:
  Leftovers leftovers_;
};

}  // namespace

SystemKeeperWorld::SystemKeeperWorld(transport::Loop& loop, int tasks, int executable,
                                     std::chrono::milliseconds spare_time)
    : loop_(loop), tasks_(tasks), nursery_(loop, tasks, executable, spare_time) {}

KeeperWorld::Got<KeeperLine> SystemKeeperWorld::take_keeper() {
  return attempt(
      [&]() -> std::unique_ptr<KeeperLine> { return std::make_unique<SocketLine>(loop_, nursery_.take(), true); });
}

// One that an earlier daemon has forked may be of another version, and not understand our next order.
void SystemKeeperWorld::put_back(std::unique_ptr<KeeperLine> line, std::optional<RunId> acknowledged) {
  auto& socket = static_cast<SocketLine&>(*line);
  if (socket.is_ours()) return nursery_.put_back(socket.take_link(), acknowledged);
  if (!acknowledged) return;
  line->tell({.kind = Message::Kind::acknowledged, .attempt = acknowledged->attempt, .task = acknowledged->task});
}

std::unique_ptr<KeeperLine> SystemKeeperWorld::meet(const std::string& contact) {
  base::Fd socket = connect_in(tasks_, contact);
  if (!socket) return nullptr;
  return std::make_unique<SocketLine>(loop_, KeeperLink{std::move(socket), contact}, false);
}

void SystemKeeperWorld::remove_contact(const std::string& contact) { unlinkat(tasks_, contact.c_str(), 0); }

void SystemKeeperWorld::remove_contacts_except(const std::set<std::string>& contacts) {
  for (const std::string& name : names_in(tasks_)) {
    if (is_contact_name(name) && !contacts.contains(name)) remove_contact(name);
  }
}

KeeperWorld::Got<KeptRecord> SystemKeeperWorld::make_record(RunId run, const std::string& contact) {
  return attempt([&]() -> std::unique_ptr<KeptRecord> {
    return std::make_unique<FileRecord>(RunRecord::create(tasks_, run, contact));
  });
}

KeeperWorld::Got<KeptRecord> SystemKeeperWorld::open_record(RunId run) {
  RunRecord record = RunRecord::open(tasks_, run);
  if (!record) return tl::unexpected(Hindrance{errno, "the record of a run"});
  return std::make_unique<FileRecord>(std::move(record));
}

void SystemKeeperWorld::remove_record(RunId run) {
  const RunRecord record = RunRecord::open(tasks_, run);
  if (record && !record.read_extent()) unlinkat(tasks_, record_name(run).c_str(), 0);
}

void SystemKeeperWorld::remove_output(RunId run) { task::remove_output(tasks_, run); }

std::vector<RunId> SystemKeeperWorld::recorded_outputs() { return task::recorded_outputs(tasks_); }

std::vector<RunId> SystemKeeperWorld::recorded_runs() { return task::recorded_runs(tasks_); }

std::unique_ptr<Pursuit> SystemKeeperWorld::end_leftovers(const Fingerprint& fingerprint,
                                                          std::chrono::milliseconds grace, std::function<void()> done) {
  return std::make_unique<LeftoversPursuit>(loop_, fingerprint, grace, std::move(done));
}

// One that is not known may be still to be forked.
void SystemKeeperWorld::wake_keeper(const Fingerprint& fingerprint) {
  if (fingerprint.keeper == 0) nursery_.wake();
  static const std::string boot = process::boot_id();
  if (fingerprint.boot != boot) return;
  pid_t pid = fingerprint.keeper;
  const auto main = fingerprint.main > 0 ? process::read_process(fingerprint.main) : std::nullopt;
  if (pid == 0 && main && main->start_ticks == fingerprint.main_ticks) pid = main->parent;
  const auto keeper = pid > 0 ? process::read_process(pid) : std::nullopt;
  const bool is_suspended = keeper && keeper->state == 'T' && keeper->session == pid;  // as every keeper's is
  if (is_suspended) process::signal_process(process::hold_process(*keeper), SIGCONT);
}

std::string SystemKeeperWorld::random_mark() { return task::random_mark(); }

}  // namespace duet::task
