#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "task/postgres/argument.h"
#include "task/postgres/output_sender.h"
#include "task/run.h"
#include "task/task.h"

namespace duet::task::postgres {

/// How an attempt ended, as the database is told. Times are how long ago: a worker's time of day counts for nothing.
struct End {
  enum Flag : int {
    by_stop = 1,         ///< the daemon was stopped: it is not tried again
    tree_is_gone = 2,    ///< no process is left
    put_back = 4,        ///< it never began
    lease_was_over = 8,  ///< it was lost with its keeper or its worker's lease: it is tried again, and not counted
  };
  RunId run = {};
  std::int64_t fence = 0;
  bool ok = false;
  std::optional<std::int64_t> code = {};
  std::optional<std::string> signal = {};
  std::optional<Failure> failure = {};
  std::optional<Started> started = {};
  std::int64_t started_ago = 0;  ///< milliseconds
  std::int64_t ended_ago = 0;
  std::optional<Usage> usage = {};
  std::optional<std::string> result = {};
  base::Duration retry = {};  ///< the pause before it is tried again, if it is
  std::optional<base::Duration> hold = {};
  std::string hold_text = {};
  int flags = 0;
};

/// What is told in one call.
struct Report {
  struct Start {
    RunId run;
    std::int64_t fence;
    Started started;
    std::int64_t ago;
  };
  struct Output {
    RunId run;
    std::int64_t fence;
    OutputSender::Portion portion;
  };
  std::vector<Start> starts = {};
  std::vector<End> ends = {};
  std::vector<Output> outputs = {};
  std::size_t most = 0;    ///< how many new tasks it asks for
  bool is_behind = false;  ///< only behind those that were taken last
  bool is_sent = false;
  bool is_taken = false;  ///< what became of it is known, and written down

  bool is_empty() const { return starts.empty() && ends.empty() && outputs.empty() && most == 0; }
};

/// How long ago, in milliseconds, by this machine's clock on the wall; never negative.
std::int64_t ago_of(const base::Clock& clock, base::UtcTime time);

void tell_outcome(End& end, const Outcome& outcome, const base::Clock& clock);

/// The arguments of report_v1 between the worker's and those of the claim.
std::vector<Argument> arguments_of(const Report& report);

/// Members of a JSON object: what an attempt was claimed with, for a database that has forgotten it.
struct ClaimedTask {
  std::string_view agent;
  std::string_view group;
  std::int64_t priority = 0;
  std::uint32_t retries = 0;
  OnLost on_lost = OnLost::fail;
  std::string_view needs = {};      ///< labels, joined as they came
  std::string_view submitter = {};  ///< whose own agent it is; empty: nobody's
  bool has_env = false;             ///< which is told only while it may be needed
  std::string_view body;
};
std::string claim_text(const ClaimedTask& task);
/// The same of what else was asked for, and is in the body: what lists and keys go by.
std::string request_text(const Submission& asked);

}  // namespace duet::task::postgres
