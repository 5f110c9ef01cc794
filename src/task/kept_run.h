#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "duet/transport/loop.h"
#include "task/contact.h"
#include "task/keeper.h"
#include "task/keeper_world.h"

namespace duet::task {

/// The daemon's end of one run: the line to its keeper, and the record that the keeper writes.
///
/// Whenever the line breaks, the record's lock tells the rest: who gets it knows that no keeper is left and none
/// will come. Part of Keepers, which owns it until it calls Keepers::forget().
class KeptRun final : KeeperLine::Listener {
 public:
  KeptRun(Keepers& keepers, RunId run, const KeeperEvents& events);
  KeptRun(const KeptRun&) = delete;
  KeptRun& operator=(const KeptRun&) = delete;

  void start(const Assignment& assignment);
  void adopt();
  void cancel();
  void follow(std::uint64_t offset);
  void acknowledge();
  bool is_acknowledged() const { return acknowledged_; }
  /// Its process; 0: not known.
  pid_t keeper();
  /// Not all that its keeper knows is in the record.
  bool is_unwritten() const { return unwritten_; }
  /// The way to its keeper, if that is still there.
  std::unique_ptr<KeeperLine> take_line();

 private:
  tl::expected<void, Hindrance> give_order(const Assignment& assignment);
  tl::expected<void, Hindrance> make_record(const std::string& contact);
  void cannot_start(const Hindrance& hindrance);
  void on_message(const Message& message) override;
  void on_closed() override;
  void connect(std::unique_ptr<KeeperLine> line);
  void wake();
  void insist();
  void tell(Message::Kind kind, std::uint64_t value = 0);

  void look();
  bool learn_from_record(const RunRecord::State& state);
  void learn(const Report& report);
  void not_now(const std::string& problem);
  void report_terminated();
  void report_ended(const Outcome& outcome);

  void find_out();
  void later(void (KeptRun::*work)());
  void set_timer(std::chrono::milliseconds wait, transport::Loop::Task task);
  void keeper_is_dead();
  void never_began();
  void wait_in_vain(std::chrono::milliseconds pause);
  void fail(const std::string& problem);
  void end(std::function<void(RunId)> event);
  void end_before_it_began(std::string why = {});

  Keepers& keepers_;
  KeeperWorld& world_;
  RunId run_;
  const KeeperEvents& events_;
  std::unique_ptr<KeptRecord> record_;
  std::unique_ptr<KeeperLine> line_;
  Fingerprint fingerprint_;
  std::unique_ptr<Pursuit> leftovers_;
  transport::Loop::Timer timer_;
  transport::Loop::Timer insist_;  // on the end of the run
  std::chrono::milliseconds pause_{5};
  std::optional<std::uint64_t> followed_;
  bool is_new_ = false;   // started here, and no keeper has spoken yet
  bool in_vain_ = false;  // no keeper took it up, and it waits before it may be started again
  bool cancelled_ = false;
  bool acknowledged_ = false;
  bool told_started_ = false;
  bool told_terminated_ = false;
  bool told_ended_ = false;
  bool unwritten_ = false;
  bool over_ = false;
};

}  // namespace duet::task
