#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "duet/transport/loop.h"
#include "task/keeper_world.h"
#include "task/nursery.h"

namespace duet::task {

/// Keepers that are processes, and records that are files. The descriptors are the caller's: the folder with a record
/// and an output file for each run and the keepers' sockets, and this program, opened, whose main function hands over
/// to run_nursery(). For the loop's thread only.
class SystemKeeperWorld : public KeeperWorld {
 public:
  SystemKeeperWorld(transport::Loop& loop, int tasks, int executable,
                    std::chrono::milliseconds spare_time = Nursery::usual_spare_time);

  Got<KeeperLine> take_keeper() override;
  void put_back(std::unique_ptr<KeeperLine> line, std::optional<RunId> acknowledged) override;
  std::unique_ptr<KeeperLine> meet(const std::string& contact) override;
  void remove_contact(const std::string& contact) override;
  void remove_contacts_except(const std::set<std::string>& contacts) override;

  Got<KeptRecord> make_record(RunId run, const std::string& contact) override;
  Got<KeptRecord> open_record(RunId run) override;
  void remove_record(RunId run) override;
  void remove_output(RunId run) override;
  std::vector<RunId> recorded_runs() override;
  std::vector<RunId> recorded_outputs() override;

  std::unique_ptr<Pursuit> end_leftovers(const Fingerprint& fingerprint, std::chrono::milliseconds grace,
                                         std::function<void()> done) override;
  void wake_keeper(const Fingerprint& fingerprint) override;
  std::string random_mark() override;

 private:
  transport::Loop& loop_;
  int tasks_;
  Nursery nursery_;
};

}  // namespace duet::task
