#include "app/commands/shared_submit.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/project/failure.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

bool is_uncertain(const peer::Outcome& outcome) {
  if (outcome.cause != peer::Outcome::Cause::refused || outcome.error->data().empty()) return false;
  const boost::json::value data = rpc::parse_value(outcome.error->data());
  return data.is_object() && member_text(data.get_object(), "outcome") == "unknown";
}

}  // namespace

std::string shared_worker(DaemonClient& daemon) {
  if (const StateFolder* const folder = daemon.folder(); folder != nullptr && !daemon.is_far()) {
    std::string name = folder->read_small(worker_file_name);
    if (name.ends_with('\n')) name.pop_back();
    return name;
  }
  if (!daemon.is_far() && daemon.project() != nullptr) return "";  // there never was a daemon
  const boost::json::value status = daemon.call("daemon.status");
  return status.is_object() ? member_text(status.get_object(), "worker") : "";
}

std::string new_submit_key() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "random bytes");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string key = "cli-";
  for (const unsigned char byte : bytes) (key += digits[byte >> 4U]) += digits[byte & 15U];
  return key;
}

std::string submit_until_certain(DaemonClient& daemon, const std::string& params) {
  using namespace std::chrono_literals;
  const base::TimePoint end = daemon.client().loop().now() + daemon.patience();
  std::optional<Failure> doubt;  // nobody knows what became of a try before
  while (true) {
    const base::Duration left = end - daemon.client().loop().now();
    std::optional<peer::Outcome> outcome;
    try {
      outcome = daemon.ask("task.submit", params, std::max<base::Duration>(left, 1ms));
    } catch (const Failure&) {
      if (doubt) throw *doubt;
      throw;
    }
    if (outcome->cause == peer::Outcome::Cause::answered) return std::move(outcome->result);
    const bool is_refused = outcome->cause == peer::Outcome::Cause::refused;
    if (doubt && !is_refused) throw *doubt;
    doubt = DaemonClient::failure_of("task.submit", *outcome);
    if (!is_uncertain(*outcome) || left <= 200ms) throw *doubt;
    std::this_thread::sleep_for(200ms);  // the daemon has waited 10 s for its database already
  }
}

}  // namespace duet::app
