#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/settings/settings_section.h"
#include "app/settings/settings_tree.h"
#include "task/cluster_settings.h"

namespace duet::app {

/// Reads `store` and `[cluster]` of one file after the other, and judges at the end whether they make a whole: which
/// file says what does not matter, and the environment's store goes over all of them.
class ClusterReader {
 public:
  /// A fault that is known at the end only.
  struct Fault {
    std::string file;  ///< empty: of the environment
    SettingPlace place;
    std::string text;
  };

  /// `top` is the file's own table. A password in it is a fault if others may read the file.
  void read(SettingFaults& faults, const SettingsSection& top, const std::string& file, bool others_may_read);

  /// `store` is the environment's; nothing more is read afterwards.
  std::optional<Fault> finish(const std::optional<std::string>& store);

  const task::ClusterSettings& settings() const { return settings_; }

 private:
  void read_store(SettingFaults& faults, const Setting& setting, bool others_may_read);
  void read_cluster(SettingFaults& faults, const Setting& setting, const std::string& file);

  task::ClusterSettings settings_;
  std::optional<std::pair<std::string, SettingPlace>> lost_after_place_;
  std::optional<std::pair<std::string, SettingPlace>> store_place_;
  std::vector<Fault> queues_own_;  // settings that belong to the queue if there is one
};

/// The labels of a worker, or those that a task needs: what is wrong with one of them; empty: nothing.
std::string why_no_label(std::string_view label);

}  // namespace duet::app
