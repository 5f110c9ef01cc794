#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/clock.h"
#include "process/tree_usage.h"
#include "task/contact.h"
#include "task/order.h"
#include "task/output_marks.h"
#include "task/run.h"

namespace duet::task {

/// How long a leased run may go on. Not above zero: that time has come.
struct LeaseLeft {
  base::Duration until_end{0};   ///< when it is told to end
  base::Duration until_over{0};  ///< when it must be dead: others may run the task then
};

/// What a keeper's core reaches the world through: the record and the output of its run, the run's processes, and the
/// daemon that it is in contact with. Calls return at once. A write or sync answers 0, or the errno that prevented it;
/// it may be tried again.
class KeeperHands {
 public:
  virtual int write_began(RunId run, const std::string& mark) = 0;
  virtual int write_started(const Started& started) = 0;
  virtual int write_outcome(const Outcome& outcome) = 0;
  virtual int write_gone() = 0;
  /// The record and its name, onto the disk.
  virtual int sync_record() = 0;

  /// Puts output away; what there is no room for is counted as dropped.
  virtual void append_output(std::string_view bytes, Stream stream) = 0;
  /// Writes down which output was dropped, as far as that could not be done yet.
  virtual int note_output() = 0;
  /// What was appended, onto the disk; nothing happens if that has been done.
  virtual int sync_output() = 0;
  /// How many bytes were appended, kept or not.
  virtual std::uint64_t output_total() const = 0;

  /// SIGTERM or SIGKILL to every process of the run.
  virtual void signal_tree(int signal) = 0;
  /// By now, however long the machine was suspended. Asked for leased runs only; who has none need not answer.
  virtual LeaseLeft lease_left() { return {}; }
  /// To the daemon; false if nobody is there any more. Only while the core has a contact.
  virtual bool send(const Message& message) = 0;

 protected:
  KeeperHands() = default;
  KeeperHands(const KeeperHands&) = default;
  KeeperHands& operator=(const KeeperHands&) = default;
  ~KeeperHands() = default;
};

/// What a keeper decides, without a system call: it is told what happens to its run, and says through its hands what is
/// written down, told and signalled. The driver (KeeperProcess, or a simulator) does the rest.
///
/// It does not finish with an end that neither its record nor the store has: what cannot be written is kept, tried
/// again, and sent to each daemon that comes. Output is on the disk before the end is told.
///
/// A leased run is told to end at two thirds of its worker's lease, and killed after the grace or when the lease is
/// over, whichever is first. It looks at the lease whenever time has passed, since nobody tells when that was extended.
///
/// In order: begin(); then the driver starts the program, and calls started() or not_started(); then whatever happens,
/// as it happens, until is_finished(); then leave(). After each call deadline() may be another one.
class KeeperCore {
 public:
  /// `has_contact`: a daemon is there; it sent the order.
  KeeperCore(const Order& order, KeeperHands& hands, base::Clock& clock, bool has_contact);

  /// False: the run must not be started, and the keeper is to end. The daemon was told.
  bool begin();
  void started(const Started& started);
  /// `error` is the errno that prevented it: it tells the daemon whether to try again.
  void not_started(int error, const std::string& problem);

  /// What the task has written, in order. `is_stdout`: it counts for the result.
  void took_output(std::string_view bytes, bool is_stdout);
  /// Its main process was reaped, with what waitpid says; `used` is what the tree has used so far, `out_of_memory` that
  /// processes were killed since it needed more than it may have. What was in the pipes has been taken. reaped() is to
  /// follow.
  void main_ended(int status, const process::Usage& used, bool out_of_memory = false);
  /// Processes of the run have ended and were reaped. `none_left`: the whole tree is gone, and all output was taken.
  void reaped(bool none_left);

  /// A daemon has come, instead of the one that may have been there.
  void contact_met();
  void contact_lost();
  /// What the daemon says. Not when is_finished(): what comes then is the next order.
  void heard(const Message& message);

  /// Does what is due. At each deadline, and after all that happens.
  void time_passed();
  std::optional<base::TimePoint> deadline() const;

  bool has_ended() const { return known_.outcome.has_value(); }
  bool has_contact() const { return has_contact_; }
  /// Nothing is left to do but leave().
  bool is_finished() const;
  /// Whether the keeper may take another order from its contact; else its process is to end.
  bool leave();

 private:
  void finish(Outcome outcome);
  bool refuse(int error, std::string_view problem);
  void terminate();
  void look_at_lease();
  void tree_gone();
  int write_missing();
  bool is_written() const { return !write_at_; }
  void write_down();
  void write_later();
  void make_durable();
  Message about_run(Message::Kind kind, std::uint64_t value = 0) const;
  void send(const Message& message);
  void send_report();
  void tell_news();
  void tell_output();
  base::TimePoint now() const { return clock_.now(); }

  // What of it is in the record.
  struct Written {
    bool started = false;
    bool outcome = false;
    bool gone = false;
  };

  RunId run_;
  std::string mark_;
  std::optional<std::chrono::milliseconds> time_limit_;
  std::chrono::milliseconds grace_;
  std::chrono::milliseconds farewell_;
  bool leased_;
  KeeperHands& hands_;
  base::Clock& clock_;
  bool has_contact_;
  std::string result_;
  Report known_;
  Written written_;
  std::optional<std::uint64_t> followed_;
  std::optional<base::TimePoint> limit_at_;
  std::optional<base::TimePoint> lease_at_;  // when to look at the lease, at the latest
  std::optional<base::TimePoint> kill_at_;
  std::optional<base::TimePoint> write_at_;  // set: something is not written yet
  std::optional<base::TimePoint> leave_at_;
  std::chrono::milliseconds kill_again_{10};
  std::chrono::milliseconds write_again_{10};
  bool killing_ = false;
  bool timed_out_ = false;
  bool lease_over_ = false;  // it was told to end for that
  bool told_ended_ = false;
  bool acknowledged_ = false;  // the store has the outcome
  bool durable_ = false;       // the disk has the record
};

}  // namespace duet::task
