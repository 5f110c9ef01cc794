#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json/object.hpp>

#include "automation/alarm.h"
#include "automation/event.h"
#include "automation/file_watch.h"
#include "automation/firings.h"
#include "automation/keepsake.h"
#include "automation/rule.h"
#include "automation/rulebook.h"
#include "automation/schedule.h"
#include "automation/work.h"
#include "duet/base/log.h"
#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/task.h"

namespace duet::automation {

struct EngineLimits {
  unsigned depth = 5;                 ///< of tasks of rules that lead to each other
  std::chrono::seconds lateness{60};  ///< with which a scheduled time still counts
  WatchLimits watch = {};
};

/// Does what the rules say: hears what happens, finds the rules that ask for it, and has their work done.
///
/// It cannot run away. A rule is held back by its cooldown, by ten firings a minute, and by the number of tasks that
/// led to its event one through the other; every firing that is held back is listed with its reason. What was switched
/// on or off, the list, and up to when schedules were dealt with are kept across restarts. For the loop's thread.
class Engine {
 public:
  using Submitted = std::function<void(const std::variant<task::TaskId, rpc::Error>&)>;
  struct Actions {
    std::function<void(task::Submission, Submitted done)> submit;
    std::function<void(std::string_view kind, boost::json::object params)> tell;  ///< `automationFired`, `notice`
    Keepsake::Actions keep;
  };
  using Done = std::function<void(const std::optional<rpc::Error>& error)>;

  /// `root` is the project's folder and must stay open.
  Engine(transport::Loop& loop, base::Log& log, int root, Actions actions, EngineLimits limits = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() = default;

  /// The rules from now on. What is known of rules that were there before stays. Throws RuleFault, and changes nothing.
  void configure(const std::vector<Rule>& rules, const WatchSettings& watch);

  /// What happens elsewhere. A task that is running when the daemon starts is told of as one that starts, after
  /// configure().
  void daemon_started();
  void task_started(const task::Task& task);
  void task_ended(const task::Task& task);

  /// A rule's switch, or without an id the engine's. Refused as invalid params if there is no such rule; refused
  /// otherwise when it works, but could not be kept.
  void enable(const std::optional<std::string>& rule_id, bool enabled, const Done& done);
  /// Lets a firing go that waits for it. Refused as invalid params if none of that id does.
  void approve(std::string_view firing_id, const Done& done);

  bool enabled() const { return enabled_; }
  std::size_t rule_count() const { return rules_.all().size(); }
  /// The result of `automation.status`.
  boost::json::object status() const;
  /// What does not work, as sentences.
  std::vector<std::string> problems() const;

 private:
  bool works(const ActiveRule& active) const { return enabled_ && active.enabled(); }

  void watch_files(const WatchSettings& settings);
  void take_changes(const std::vector<FileChange>& changes);
  void list_what_was_missed();
  void look_at_schedules();
  void take_due(ActiveRule& active, const Schedule::Passed& passed);
  void set_alarm();
  void note_start(const task::Task& task, const Origin& origin);
  void offer(const Event& event);

  void consider(ActiveRule& active, const Event& event, std::size_t count);
  void fire(const ActiveRule& active, const Event& event, std::size_t count);
  using Ran = std::function<void(Firing firing, const std::optional<rpc::Error>& error)>;
  void run(Firing firing, const Work& work, Ran ran);
  void has_fired(Firing firing);
  void hold(Firing firing, std::string reason);
  Firing new_firing(const ActiveRule& active, std::size_t count);
  void list(Firing firing);

  void load();
  std::string saved() const;
  boost::json::object shown_rule(const ActiveRule& active) const;

  transport::Loop& loop_;
  base::Log& log_;
  int root_;
  Actions actions_;
  EngineLimits limits_;
  Keepsake keepsake_;

  bool enabled_ = true;
  Rulebook rules_;
  Firings firings_;
  Alarm alarm_;
  std::unique_ptr<FileWatch> watch_;
  std::string problem_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // answers may come when the engine has gone
};

}  // namespace duet::automation
