#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "automation/alarm.h"
#include "automation/effects.h"
#include "automation/event.h"
#include "automation/file_watch.h"
#include "automation/firings.h"
#include "automation/note.h"
#include "automation/programs.h"
#include "automation/rule.h"
#include "automation/rulebook.h"
#include "automation/schedule.h"
#include "automation/work.h"
#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/queue.h"
#include "task/store.h"
#include "task/task.h"

namespace duet::automation {

struct EngineLimits {
  std::chrono::seconds lateness{60};  ///< with which a scheduled time still counts
  std::chrono::seconds retry{30};     ///< after approved work was refused
  WatchLimits watch = {};
};

/// Does what the rules say: hears what happens, finds the rules that ask for it, and has their work done.
///
/// An event of a task sets off a rule once, whatever happens to the daemon: how far the journal was read, the firing,
/// what the rule may do next and the task are one transaction. It cannot run away. A rule is held back by its cooldown,
/// by ten firings a minute, and by the number of tasks and programs that led to its event one through the other; every
/// firing that is held back is listed with its reason. All of it is kept across restarts. Throws nothing but from its
/// constructor. For the loop's thread; the store and the queue outlive it.
class Engine {
 public:
  using Done = std::function<void(const std::optional<rpc::Error>& error)>;
  /// `{id, taskId?}` of a firing, or why there is none.
  using Fired = std::function<void(const tl::expected<boost::json::object, rpc::Error>&)>;
  /// Settings that can be used.
  struct Plan {
    Rulebook::Rules rules;
    WatchSettings watch;
  };

  /// `root` is the project's folder and must stay open. Throws rpc::Error if the store cannot be read.
  Engine(transport::Loop& loop, base::Log& log, int root, task::Store& store, task::Queue& queue,
         EngineLimits limits = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// Says what is wrong with them, and changes nothing.
  static tl::expected<Plan, std::string> prepare(const std::vector<Rule>& rules, const WatchSettings& watch);
  /// The rules from now on. What is known of rules that were there before stays.
  void configure(Plan plan);

  /// What happened while no daemon ran is in the journal; then this one has started. After configure(). `running` are
  /// tasks that have started before.
  void begin(const std::vector<task::Task>& running);
  /// The next event of the journal, once it is on disk.
  void take(const task::Event& event);
  /// A task starts on this machine now: what it changes may be seen before the journal tells of it.
  void task_starts(const task::Task& task) {
    if (!rules_.all().empty()) note_start(task);  // else nobody reads of its end
  }
  /// The daemon stops: what happens from now on is for the next one.
  void close();

  /// A rule's switch, or without an id the engine's, when it is on disk. Refused as invalid params if there is no such
  /// rule; refused otherwise when it works, but cannot be kept until the disk can be written.
  void enable(const std::optional<std::string>& rule_id, bool enabled, const Done& done);
  /// Lets a firing go that waits for it; answers when that is on disk. Refused as invalid params if none of that id
  /// does, and while the rule is off. What the queue has no room for then is done when it has.
  void approve(std::string_view firing_id, const Done& done);

  /// Takes a firing back that waits for approval; answers when that is on disk.
  void deny(std::string_view firing_id, const Done& done);

  /// An event that is only thought of.
  struct Question {
    std::optional<std::string> path = {};
    std::optional<task::TaskId> task = {};
    std::optional<base::UtcTime> time = {};
  };
  /// The result of `automation.test`: whether the rule would fire, what says no, and what it would do. Nothing is done.
  /// Throws rpc::Error: no such rule, or a question that its events do not answer.
  boost::json::object test(std::string_view rule_id, const Question& question);
  /// The rule fires now, whatever holds it back but its switch and its approval. Answers with the firing when it is on
  /// disk, as far as it is done at once.
  void fire_now(std::string_view rule_id, const Question& question, const Fired& fired);
  /// The result of `automation.history`. Throws rpc::Error: no such rule.
  boost::json::object history(std::string_view rule_id) const;

  bool enabled() const { return enabled_; }
  std::size_t rule_count() const { return rules_.all().size(); }
  /// A rule is on that events could set off.
  bool has_work() const;
  /// The result of `automation.status`.
  boost::json::object status() const;
  /// What does not work, as sentences.
  std::vector<std::string> problems() const;

 private:
  using Kind = task::Change::Kind;
  /// `may_come`: nothing was written, and it may be done later.
  struct Refused {
    rpc::Error error;
    bool may_come;
    std::string elsewhere = {};  ///< another daemon has done it, in these words
  };
  using Ran = std::function<void(const tl::expected<task::TaskId, Refused>&)>;

  bool works(const ActiveRule& active) const { return enabled_ && active.enabled(); }
  std::uint64_t newest_event() const;

  // Sources.
  void watch_files(const WatchSettings& settings);
  std::optional<Cause> cause_of(base::TimePoint seen) const;
  void take_change(const FileChange& change);
  void take_bursts();
  void look_at_schedules(bool after_start);
  void take_due(ActiveRule& active, const Schedule::Passed& passed, bool after_start);
  void set_alarm();
  bool take_in_order(const task::Event& event);
  void take_end(const task::Event& event, const std::optional<task::Task>& task);
  void catch_up();
  void catch_up_later(base::Duration wait);
  void note_start(const task::Task& task);
  void note_elsewhere(task::TaskId id, const std::string& rule_id);
  void note_wait(const task::Task& task);

  // Firings.
  void offer(const Event& event, std::uint64_t seq);
  void consider(ActiveRule& active, const Event& event, std::size_t count);
  void fire(const ActiveRule& active, const Event& event, Firing firing);
  void run(const Firing& firing, const Work& work, Kind kind, const Ran& ran);
  void ask_first(const Firing& firing, const Work& work, Note note, Kind kind, const Ran& ran);
  void submit(const Firing& firing, const Work& work, Note note, Kind kind, const Ran& ran);
  void refuse(Firing firing, std::string reason);
  /// What is told of it in the same transaction.
  struct Told {
    std::string kind;
    boost::json::object params;
  };
  void hold(Firing firing, std::string reason) { hold(std::move(firing), std::move(reason), Told{}); }
  void hold(Firing firing, std::string reason, Told told);
  void give_key(const Rule& rule, const Event& event, task::Submission& submission) const;
  void hold_for_approval(Firing firing, Work work);
  Firing new_firing(const ActiveRule& active, const Event& event, std::size_t count);
  void stop_chain(ActiveRule& active, const Event& event, std::size_t count);
  std::string chain_limit() const;
  /// One of a chain, and what came before it.
  struct Link {
    boost::json::object shown;
    std::string before;
  };
  std::optional<Link> link_of(const std::string& cause);
  boost::json::array links_to(const std::string& last);
  void run_program(const Firing& firing, const Program& program);

  // Firings that wait until the rule may: engine_pending.cpp.
  static bool waits_for_tasks(const ActiveRule& active);
  static bool asks_although_busy(const ActiveRule& active);
  static bool happens_later(const ActiveRule& active, std::string_view refusal);
  void find_live_tasks();
  void wait(ActiveRule& active, const Event& event, Firing firing, std::string reason);
  void join(ActiveRule& active, const Event& event, std::size_t count);
  void forget_pending(ActiveRule& active);
  void forget_pending_of_absent();
  void cancel_tasks_of(const ActiveRule& active);
  void release(ActiveRule& active);
  void release_all();
  void set_release_timer();
  static constexpr const char* switched_off = "off: the rule was switched off while this waited";
  static constexpr const char* busy = "busy: a task of the rule has not ended";
  static constexpr const char* busy_until_then = "busy: a task of the rule has not ended; it happens then";

  // Questions: engine_questions.cpp.
  Event event_for(const ActiveRule& active, const Question& question);
  std::optional<std::string> why_no_file(const ActiveRule& active, const Event& event) const;
  std::string hindrance_of(const ActiveRule& active, const Event& event) const;
  void answer_hand(std::uint64_t number);
  void has_submitted(const std::string& rule_id, std::optional<task::TaskId> task);
  void has_fired(std::uint64_t number, task::TaskId task);

  // Approvals.
  std::optional<rpc::Error> why_not_now(const Firing& firing) const;
  void keep_approved(std::uint64_t number, const std::string& why_later, const Done& done);
  void try_approved();
  void try_approved(std::uint64_t number);
  void choose_agents_of_old_work();

  // What is kept.
  Note note_of(std::string_view rule_id);
  Note note_of_all_rules();
  Note note_of_switch(const std::optional<std::string>& rule_id);
  static void tell_switched(Note& note, const std::optional<std::string>& rule_id, bool enabled);
  void write(Note note, Kind kind, std::function<void(bool kept)> done = {});
  bool store_is_in_trouble() const { return !store_.is_healthy() || !store_.has_room(); }
  void save_all_later();
  void save_all();
  void has_gone_along(const Note::Along& along, bool kept);
  void load();
  boost::json::object shown_rule(const ActiveRule& active) const;

  transport::Loop& loop_;
  base::Log& log_;
  int root_;
  task::Store& store_;
  task::Queue& queue_;
  EngineLimits limits_;

  bool enabled_ = true;
  bool configured_ = false;
  bool closed_ = false;
  Rulebook rules_;
  Firings firings_;
  Effects effects_;
  Programs programs_;
  unsigned max_chain_ = default_max_chain;
  std::optional<std::uint64_t> position_;        // in the journal; none before the first rules came
  std::optional<std::uint64_t> saved_position_;  // by an engine before
  std::string saved_numbers_;                    // whose number that is
  bool is_behind_ = true;                        // the journal is read from the store
  bool will_save_all_ = false;                   // when the store can be written
  bool owes_switch_ = false;                     // the engine's own, likewise
  std::map<std::uint64_t, Fired> hands_;         // of firings by hand whose fate is not on disk yet
  Alarm alarm_;
  std::unique_ptr<FileWatch> watch_;
  std::vector<std::string> faults_;  // of what was kept
  transport::Loop::Timer catching_up_;
  transport::Loop::Timer retrying_;
  transport::Loop::Timer releasing_;
  base::Lifetime lifetime_;  // answers may come when the engine has gone
};

}  // namespace duet::automation
