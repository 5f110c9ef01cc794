#include "app/settings/settings_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "app/settings/store_url.h"

namespace duet::app {
namespace {

using Text = std::string_view;

constexpr Text cluster_names[] = {"project", "schema", "name",       "labels", "accept",  "run",
                                  "on_lost", "lease",  "lost_after", "output", "insecure"};
constexpr Text on_lost_choices[] = {"fail", "retry"};
constexpr Text of_the_queue[] = {"queue_capacity", "keep_days", "keep_tasks", "keep_output"};
constexpr std::size_t most_labels = 64;
constexpr std::size_t longest_label = 64;
constexpr std::size_t longest_schema = 40;
constexpr std::uint64_t most_output = std::uint64_t{64} << 20U;
constexpr std::chrono::milliseconds shortest_lease = std::chrono::seconds(30);
constexpr std::chrono::milliseconds longest_lease = std::chrono::hours(1);
constexpr std::chrono::milliseconds longest_lost_after = std::chrono::hours(7 * 24);

bool is_schema(Text name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9'); };
  const bool begins_well = !name.empty() && !(name.front() >= '0' && name.front() <= '9');
  return begins_well && name.size() <= longest_schema && !name.starts_with("pg_") && std::ranges::all_of(name, fits);
}

// As far as it is a name: without one the settings must say it.
std::string host_name() {
  std::array<char, longest_label + 1> room{};
  if (gethostname(room.data(), room.size() - 1) != 0) return "";
  const std::string name(room.data());
  return why_no_label(name).empty() ? name : "";
}

void read_text(const SettingsSection& section, Text name, std::string& into) {
  auto text = section.text(name);
  if (!text) return;
  const std::string wrong = why_no_label(*text);
  if (!wrong.empty()) return section.refuse(*section.find(name), name, wrong);
  into = std::move(*text);
}

void read_schema(const SettingsSection& section, std::string& into) {
  auto text = section.text("schema");
  if (!text) return;
  if (!is_schema(*text)) {
    return section.refuse(*section.find("schema"), "schema",
                          "a name of a-z, 0-9 and '_', not with a digit or 'pg_' first, of at most 40 letters");
  }
  into = std::move(*text);
}

std::string why_no_own_label(Text label) {
  if (label.starts_with("name=")) return "another one: each worker has its name as a label already";
  if (label.starts_with("limit=")) return "another one: a worker that can keep limits has a label for each already";
  return why_no_label(label);
}

std::optional<std::vector<std::string>> read_list(const SettingsSection& section, Text name,
                                                  std::string (*wrong_with)(Text)) {
  auto texts = section.texts(name);
  if (!texts) return texts;
  const auto& list = *section.find(name)->as<Setting::List>();
  if (texts->size() > most_labels) section.refuse(*section.find(name), name, "a list of at most 64");
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const std::string wrong = wrong_with((*texts)[i]);
    if (!wrong.empty()) section.refuse(list[i], std::string(name) + "[" + std::to_string(i) + "]", wrong);
  }
  return texts;
}

void read_lease(const SettingsSection& section, task::ClusterSettings& into) {
  const auto lease = section.duration("lease");
  if (!lease) return;
  if (*lease < shortest_lease || *lease > longest_lease)
    return section.refuse(*section.find("lease"), "lease", "from 30s to 1h");
  into.lease = *lease;
}

}  // namespace

std::string why_no_label(Text label) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const bool fits = !label.empty() && label.size() <= longest_label && std::ranges::none_of(label, is_control);
  return fits ? "" : "1 to 64 bytes without control characters";
}

void ClusterReader::read(SettingFaults& faults, const SettingsSection& top, const std::string& file,
                         bool others_may_read) {
  if (const Setting* store = top.find("store")) {
    store_place_ = {file, store->place};
    read_store(faults, *store, others_may_read);
  }
  if (const Setting* cluster = top.find("cluster")) read_cluster(faults, *cluster, file);
  for (const Text name : of_the_queue) {
    const Setting* const found = top.find(name);
    if (found == nullptr) continue;
    queues_own_.push_back({file, found->place,
                           std::string(name) +
                               " belongs to the queue that `store` names: take it out, and say "
                               "'duet-rpc cluster set " +
                               std::string(name) + "=VALUE'"});
  }
}

// Whatever is wrong with it, no piece of it is shown: it may be a password.
void ClusterReader::read_store(SettingFaults& faults, const Setting& setting, bool others_may_read) {
  const auto* const text = setting.as<std::string>();
  const auto url = text == nullptr ? std::nullopt : read_store_url(*text);
  if (!url) return faults.add(setting.place, "store must be " + std::string(store_forms));
  if (url->has_password && others_may_read) {
    return faults.add(setting.place,
                      "store has a password, and others may read this file: 'chmod 600' it, or leave the password to "
                      "~/.pgpass");
  }
  settings_.store = *text;
}

void ClusterReader::read_cluster(SettingFaults& faults, const Setting& setting, const std::string& file) {
  const SettingsSection section(faults, setting, "cluster.", cluster_names);
  read_text(section, "project", settings_.project);
  read_schema(section, settings_.schema);
  read_text(section, "name", settings_.name);
  if (auto labels = read_list(section, "labels", why_no_own_label)) settings_.labels = std::move(*labels);
  if (auto accept = read_list(section, "accept", why_no_label)) settings_.accept = std::move(accept);
  settings_.run = section.flag("run").value_or(settings_.run);
  if (const auto on_lost = section.choice("on_lost", on_lost_choices))
    settings_.on_lost = *on_lost == "retry" ? task::OnLost::retry : task::OnLost::fail;
  read_lease(section, settings_);
  if (const auto lost_after = section.duration("lost_after")) {
    if (*lost_after < shortest_lease || *lost_after > longest_lost_after)
      section.refuse(*section.find("lost_after"), "lost_after", "from the lease to 7d");
    settings_.lost_after = *lost_after;
    lost_after_place_ = {file, section.find("lost_after")->place};
  }
  if (const auto output = section.bytes("output", 0)) {
    if (*output > most_output) section.refuse(*section.find("output"), "output", "at most 64M");
    settings_.output = *output;
  }
  settings_.insecure = section.flag("insecure").value_or(settings_.insecure);
}

std::optional<ClusterReader::Fault> ClusterReader::finish(const std::optional<std::string>& store) {
  if (store) {
    if (!read_store_url(*store)) return Fault{"", {}, "DUET_RPC_STORE must be " + std::string(store_forms)};
    settings_.store = store;
    store_place_.reset();
  }
  if (settings_.lost_after < settings_.lease) {
    constexpr const char* below = "cluster.lost_after is below cluster.lease: it must be from the lease to 7d";
    if (lost_after_place_) return Fault{lost_after_place_->first, lost_after_place_->second, below};
    settings_.lost_after = settings_.lease;
  }
  if (!settings_.store) return std::nullopt;
  if (!queues_own_.empty()) return queues_own_.front();
  const std::string file = store_place_ ? store_place_->first : "";
  const SettingPlace place = store_place_ ? store_place_->second : SettingPlace();
  if (settings_.project.empty())
    return Fault{file, place, "store needs cluster.project, the project that the queue is for: project = \"site\""};
  if (settings_.name.empty()) settings_.name = host_name();
  if (settings_.name.empty())
    return Fault{file, place, "store needs cluster.name, since this machine has no name that could be used"};
  return std::nullopt;
}

}  // namespace duet::app
