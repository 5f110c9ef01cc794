#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/json/object.hpp>

#include "task/task.h"

namespace duet::app {

// What the `task.*` methods answer. The names are those of the JSON members.

struct Submitted {
  std::string taskId;
  task::State state;
  std::optional<std::string> handle = {};
};
BOOST_DESCRIBE_STRUCT(Submitted, (), (taskId, state, handle))

struct ChatSent {
  std::string taskId;
};
BOOST_DESCRIBE_STRUCT(ChatSent, (), (taskId))

struct Cancelled {
  bool cancelled;
};
BOOST_DESCRIBE_STRUCT(Cancelled, (), (cancelled))

struct TaskError {
  task::Reason reason;
  std::string message;
};
BOOST_DESCRIBE_STRUCT(TaskError, (), (reason, message))

/// An end that came when its task had been given up.
struct LateEnd {
  std::optional<std::int64_t> exitCode;
  std::optional<std::string> signal;
  std::string completedAt;
};
BOOST_DESCRIBE_STRUCT(LateEnd, (), (exitCode, signal, completedAt))

/// The shape of task::record_of(). Everything is there; what is not known is null. What follows the metadata is of a
/// queue that machines share.
struct TaskRecord {
  std::string id;
  std::string prompt;
  std::string agent;
  std::string group;
  std::int64_t priority;
  task::State state;
  bool held;
  std::string createdAt;
  std::optional<std::string> notBefore;
  std::optional<std::string> retryAt;
  std::optional<std::string> startedAt;
  std::optional<std::string> completedAt;
  std::optional<std::int64_t> pid;
  std::optional<std::int64_t> exitCode;
  std::optional<std::string> signal;
  std::optional<std::string> result;
  std::optional<TaskError> error;
  std::uint32_t attempts;
  std::optional<double> cpuSeconds;
  std::optional<std::uint64_t> maxMemory;
  std::optional<std::uint64_t> outputBytes;
  bool outputDropped;
  std::uint32_t attemptsNotCounted;
  std::map<std::string, std::string, std::less<>> labels;
  boost::json::object metadata;
  std::optional<std::string> worker = {};
  std::optional<task::OnLost> onLost = {};
  std::optional<std::vector<std::string>> needs = {};
  std::optional<std::string> submittedBy = {};
  std::optional<bool> silent = {};
  std::optional<LateEnd> late = {};
  std::optional<std::string> waitingFor = {};
};
BOOST_DESCRIBE_STRUCT(TaskRecord, (),
                      (id, prompt, agent, group, priority, state, held, createdAt, notBefore, retryAt, startedAt,
                       completedAt, pid, exitCode, signal, result, error, attempts, cpuSeconds, maxMemory, outputBytes,
                       outputDropped, attemptsNotCounted, labels, metadata, worker, onLost, needs, submittedBy, silent,
                       late, waitingFor))

struct TaskCounts {
  std::int64_t total;
  std::int64_t queued;
  std::int64_t running;
  std::int64_t completed;
  std::int64_t failed;
  std::int64_t cancelled;
};
BOOST_DESCRIBE_STRUCT(TaskCounts, (), (total, queued, running, completed, failed, cancelled))

struct TaskOutput {
  std::uint64_t offset;
  std::string data = {};
  std::uint64_t next;
  bool done;
  std::optional<std::uint64_t> dropped = {};
};
BOOST_DESCRIBE_STRUCT(TaskOutput, (), (offset, data, next, done, dropped))

}  // namespace duet::app
