#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulate/cluster_names.h"
#include "simulate/cluster_truth.h"
#include "simulate/model_database.h"
#include "task/postgres/report.h"

namespace duet::simulate {

/// Two workers of a database, and the truth that watches it. What a test does to the database it does with the same
/// functions as daemons do; each call is told to the truth.
class ClusterFixture : public testing::Test {
 protected:
  using Result = task::postgres::Result;
  using End = task::postgres::End;
  using Report = task::postgres::Report;
  static constexpr std::chrono::seconds lease{30};

  ClusterFixture() {
    for (std::size_t host = 0; host < 2; ++host) {
      truth.set_host(host, 1, host == 0 ? std::vector<std::string>{"gpu"} : std::vector<std::string>());
      attach(host);
    }
  }

  ModelDatabase::Answer call(const std::string& function, const std::vector<Argument>& arguments) {
    ModelDatabase::Answer answer = database.call(function, arguments);
    truth.carried_out(function, arguments);
    return answer;
  }

  void attach(std::size_t host) {
    using task::postgres::array_of;
    using List = std::vector<std::string>;
    const List labels = host == 0 ? List{"gpu"} : List();
    call("attach_v1", {worker_name(host),
                       {},
                       array_of(List()),
                       incarnation(host),
                       "",
                       "30000",
                       "60000",
                       array_of(labels),
                       array_of(List{"a"}),
                       array_of(List{"a"}),
                       "1"});
  }

  std::string incarnation(std::size_t host) const { return "incarnation of " + worker_name(host); }
  std::vector<Argument> as(std::size_t host) const { return {std::to_string(host + 1), incarnation(host)}; }
  std::vector<Argument> as(std::size_t host, const std::vector<Argument>& more) const {
    std::vector<Argument> all = as(host);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// What the client asks for, and what arrives of it.
  task::TaskId submit(const task::Submission& submission) {
    truth.submitted(0, submission);
    const task::TaskId id = write(submission);
    truth.accepted(submission.prompt, id);
    return id;
  }

  /// Only what arrives.
  task::TaskId write(const task::Submission& submission) {
    const auto list = [](const std::string& text) {
      return Argument(task::postgres::array_of(std::vector<std::string>{text}));
    };
    std::string after;
    for (const task::TaskId id : submission.after) after += (after.empty() ? "" : ",") + std::to_string(id);
    const ModelDatabase::Answer answer =
        call("submit_v1",
             as(0, {list("id " + std::to_string(++submits_)), list(submission.key), list("a"), list("g"), list(""),
                    list("f"), list(std::to_string(submission.priority.value_or(0))),
                    list(std::to_string(submission.retries.value_or(0))),
                    list(submission.on_lost == task::OnLost::retry ? "1" : "0"), list("0"), list("0"),
                    list(submission.prompt), list("{}"), list(""), list(to_body(submission)), list(""), list(after)}));
    return static_cast<task::TaskId>(answer->number(0, answer->column("id")).value());
  }

  /// The fence of the task that it has then; 0: there was none.
  std::int64_t claim(std::size_t host) {
    Report report;
    report.most = 1;
    const Result rows = tell(host, report);
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (rows.text(row, 0) == "claim") return rows.number(row, rows.column("fence")).value();
    }
    return 0;
  }

  Result tell(std::size_t host, const Report& report) {
    std::vector<Argument> arguments = as(host, arguments_of(report));
    arguments.emplace_back(std::to_string(report.most));
    arguments.insert(arguments.end(), 4, Argument());
    arguments.emplace_back("1");  // the server's timeline
    return *call("report_v1", arguments);
  }

  /// The rows of the task's end.
  Result tell_end(std::size_t host, const Tree& tree, End end) {
    end.run = tree.run;
    end.fence = static_cast<std::int64_t>(tree.fence);
    Report report;
    report.ends.push_back(std::move(end));
    return tell(host, report);
  }

  /// What a process of that task is.
  Tree tree_of(task::TaskId id, std::int64_t fence, std::uint32_t attempt = 1) const {
    return {.run = {id, attempt},
            .mark = {},
            .ordered = clock.now(),
            .fence = static_cast<std::uint64_t>(fence),
            .play = {},
            .members = {{.pid = 7}}};
  }

  Tree start(std::size_t host, task::TaskId id) {
    Tree tree = tree_of(id, claim(host));
    truth.began(host, tree);
    return tree;
  }

  void die(const Tree& tree, int status, bool kept = true) {
    truth.main_ended(tree, status, kept);
    truth.gone(tree);
  }

  static int exited(int code) { return code << 8; }
  static End completed() { return {.ok = true, .code = 0, .started = task::Started{.pid = 7}}; }
  static End failed(int code) {
    return {.code = code, .failure = task::Failure{task::Reason::exit, "exited"}, .started = task::Started{.pid = 7}};
  }
  static End killed() {
    return {.signal = "SIGTERM",
            .failure = task::Failure{task::Reason::signal, "ended"},
            .started = task::Started{.pid = 7}};
  }
  static End failed_with(task::Reason reason) { return {.failure = task::Failure{reason, "so it is"}}; }

  /// What the truth says when all is over; empty: nothing.
  std::string said() const { return truth.violation().value_or(""); }
  std::string said_at_end() {
    call("number_v1", {"1000"});
    truth.check_ends();
    return said();
  }

  base::VirtualClock clock{base::UtcTime(std::chrono::seconds(1'800'000'000))};
  ModelDatabase database{clock, Random(1)};
  ClusterTruth truth{database, clock, 2};

 private:
  int submits_ = 0;
};

}  // namespace duet::simulate
