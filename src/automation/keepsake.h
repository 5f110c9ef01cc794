#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace duet::automation {

/// A text that is kept in the store across restarts. One version is written at a time; what changes meanwhile goes into
/// the next one. For the loop's thread.
class Keepsake {
 public:
  using Done = std::function<void(bool kept)>;
  struct Actions {
    std::function<std::optional<std::string>()> recall;
    std::function<void(std::string text, Done done)> remember;
  };

  Keepsake(Actions actions, std::function<std::string()> text) : actions_(std::move(actions)), text_(std::move(text)) {}

  std::optional<std::string> recall() const { return actions_.recall(); }
  /// The text as it is now, or later; `done` when that is written.
  void save(Done done);
  bool was_kept() const { return kept_; }

 private:
  void write();
  void written(bool kept, const std::vector<Done>& waited);

  Actions actions_;
  std::function<std::string()> text_;
  std::vector<Done> waiting_;  // for the next version
  bool writing_ = false;
  bool kept_ = true;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // the store may answer when this has gone
};

}  // namespace duet::automation
