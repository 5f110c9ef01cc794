#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/lifetime.h"
#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/agent.h"
#include "task/store.h"
#include "task/task.h"

namespace duet::task {

/// What keeps tasks from starting that are not to blame for it: the queue is paused, or a group is, or an agent is held
/// because of a usage limit.
///
/// All of it is on disk with its event, and outlives the daemon. Nothing starts from when a pause was asked for; what
/// was paused goes on when that is on disk. A pause or resume of a group counts until the setting `paused` of that
/// group is changed. For the loop's thread only.
class QueueGate {
 public:
  /// Whether that changed anything.
  using Changed = std::function<void(const tl::expected<bool, rpc::Error>&)>;
  struct Hold {
    base::UtcTime until = {};
    base::UtcTime since = {};
    TaskId task = 0;  ///< that met the limit
    std::string text = {};
    base::TimePoint latest = {};  ///< it ends then, whatever the clock on the wall was set to
    bool releasing = false;       ///< somebody has asked for its end, and that is on its way to the disk
  };

  /// Holds are looked at every ten seconds at least, since the clock on the wall may be set.
  static constexpr base::Duration between_looks = std::chrono::seconds(10);

  /// `opened` is called when something may start that could not before.
  QueueGate(transport::Loop& loop, Store& store, const TaskSettings& settings, std::function<void()> opened);
  QueueGate(const QueueGate&) = delete;
  QueueGate& operator=(const QueueGate&) = delete;

  /// What an earlier daemon was told. Throws rpc::Error if the store cannot be read.
  void load();
  /// Before the settings are replaced by these.
  void change_settings(const TaskSettings& settings);

  /// Without a group: the whole queue.
  bool is_paused() const { return is_closed(whole_queue); }
  bool is_paused(std::string_view group) const { return is_closed(group); }
  /// Those of which anybody has said something.
  std::vector<std::string> paused_groups() const;
  /// The group must be known.
  void set_paused(const std::optional<std::string>& group, bool paused, Changed changed);

  const std::map<std::string, Hold, std::less<>>& holds() const { return holds_; }
  bool is_held(std::string_view agent) const { return holds_.contains(agent); }
  /// Holds an agent from now on, or longer than before, and gives what writes that down: with the end of the task.
  std::function<void(StoreWriter&)> hold(const std::string& agent, Hold hold);
  void release(const std::string& agent, Changed changed);

 private:
  struct Pause {
    bool now = false;                               // as it is on disk
    std::map<std::uint64_t, bool> on_its_way = {};  // to the disk, in that order
    bool wanted() const { return on_its_way.empty() ? now : on_its_way.rbegin()->second; }
  };

  static constexpr std::string_view whole_queue = "";

  bool is_closed(std::string_view name) const;
  bool setting_of(std::string_view group) const;
  void write_pause(const std::string& name, bool paused, bool by_settings, std::function<void(bool kept)> done);
  bool load_pause(std::string_view name, std::string_view value);
  void load_hold(std::string_view agent, std::string_view value);
  void end_hold(const std::string& agent);
  void look_at_holds();
  void look_later();

  transport::Loop& loop_;
  Store& store_;
  std::map<std::string, GroupSettings, std::less<>> settings_;
  std::function<void()> opened_;
  std::map<std::string, Pause, std::less<>> pauses_;  // of groups, and of all under an empty name
  std::uint64_t pauses_written_ = 0;
  std::map<std::string, Hold, std::less<>> holds_;
  transport::Loop::Timer timer_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task
