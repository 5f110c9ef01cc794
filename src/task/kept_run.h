#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"
#include "task/contact.h"
#include "task/keeper.h"
#include "task/leftovers.h"
#include "task/run_record.h"

namespace duet::task {

/// The daemon's end of one run: the link to its keeper, and the record that the keeper writes.
///
/// Whenever the link breaks, the record's lock tells the rest: who gets it knows that no keeper is left and none
/// will come. Part of Keepers, which owns it until it calls Keepers::forget().
class KeptRun final : transport::Loop::Watcher {
 public:
  KeptRun(Keepers& keepers, RunId run, const KeeperEvents& events);
  KeptRun(const KeptRun&) = delete;
  KeptRun& operator=(const KeptRun&) = delete;
  ~KeptRun();

  void start(const Assignment& assignment);
  void adopt();
  void cancel();
  void follow(std::uint64_t offset);
  void settle();
  bool is_settled() const { return settled_; }
  /// The way to its keeper, if that is still there.
  KeeperLink take_link();

 private:
  void give_order(const Assignment& assignment);
  void cannot_start(int error, const std::string& problem);
  void make_record(const std::string& contact);
  void on_ready(std::uint32_t events) override;
  void take(const Message& message);
  void connect(KeeperLink link);
  void disconnect();
  void tell(Message::Kind kind, std::uint64_t value = 0);
  void wake_keeper() const;

  void look();
  void report(const RunRecord::State& state);
  void report_terminated();
  void report_ended(const Outcome& outcome);

  void find_out();
  void find_out_later();
  void keeper_is_dead();
  void never_began();
  void fail(const std::string& problem);
  void end(std::function<void(RunId)> event);

  Keepers& keepers_;
  RunId run_;
  const KeeperEvents& events_;
  RunRecord record_;
  KeeperLink link_;
  Fingerprint fingerprint_;
  std::unique_ptr<Leftovers> leftovers_;
  std::optional<transport::Loop::Timer> timer_;
  std::chrono::milliseconds pause_{5};
  std::optional<std::uint64_t> followed_;
  bool is_new_ = false;  // started here, and no keeper has spoken yet
  bool cancelled_ = false;
  bool settled_ = false;
  bool told_started_ = false;
  bool told_terminated_ = false;
  bool told_ended_ = false;
  bool over_ = false;
};

/// Removes the record, unless the output needs it.
void remove_record(int tasks, RunId run);

}  // namespace duet::task
