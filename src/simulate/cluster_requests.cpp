#include <algorithm>
#include <utility>

#include "simulate/cluster_names.h"
#include "simulate/cluster_simulation.h"
#include "simulate/model.h"

// What clients of a cluster ask its daemons.

namespace duet::simulate {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t ClusterSimulation::expect_answer(Worker& worker, const std::string& what, base::Duration patience) {
  unanswered_[++requests_] = {what, machine_.clock().now() + patience, worker.host.number};
  return requests_;
}

void ClusterSimulation::take_answer(std::uint64_t request) {
  if (unanswered_.erase(request) == 0) truth_.fail("request " + std::to_string(request) + " is answered twice");
}

task::TaskId ClusterSimulation::some_task() {
  std::vector<task::TaskId> ids = truth_.known_tasks();
  if (ids.empty()) return 1;
  const std::size_t newest = std::min<std::size_t>(ids.size(), 12);
  return chance_.one_in(4) ? ids[chance_.below(ids.size())] : ids[ids.size() - 1 - chance_.below(newest)];
}

void ClusterSimulation::request() {
  Worker& worker = some_worker();
  if (!worker.daemon || worker.frozen || worker.stopping) return;
  switch (chance_.below(10)) {
    case 0:
    case 1:
      return cancel(worker, some_task());
    case 2:
      return wait(worker);
    case 3:
      if (!keyed_.empty()) send(worker, keyed_[chance_.below(keyed_.size())]);
      return;
    default:
      submit(worker);
  }
}

void ClusterSimulation::submit(Worker& worker) {
  if (truth_.open_tasks() >= habits_.open_tasks) return;
  const std::uint64_t number = chance_.next() >> 20U;
  const std::uint64_t kind = chance_.below(12);
  task::Submission submission{.prompt = kind == 0  ? endless_prompt_of(number)
                                        : kind < 4 ? long_prompt_of(number)
                                                   : prompt_of(number)};
  submission.priority = static_cast<std::int64_t>(chance_.below(3));
  submission.on_lost = chance_.one_in(2) ? task::OnLost::retry : task::OnLost::fail;
  if (chance_.one_in(3)) submission.retries = static_cast<std::uint32_t>(chance_.between(1, 3));
  if (chance_.one_in(6)) submission.after.push_back(some_task());
  if (chance_.one_in(10)) {
    submission.needs = {"gpu"};
  } else {
    submission.here = chance_.one_in(10);
  }
  if (chance_.one_in(10)) submission.delay = milliseconds(chance_.below(60'000));
  if (chance_.one_in(8)) {
    submission.key = "key " + submission.prompt;
    keyed_.push_back(submission);
  }
  send(worker, submission);
}

void ClusterSimulation::send(Worker& worker, const task::Submission& submission) {
  const std::string& prompt = submission.prompt;
  note("submit " + prompt + " to " + worker.host.name +
       (submission.on_lost == task::OnLost::retry ? ", on lost retry" : "") +
       (submission.retries ? ", retries " + std::to_string(*submission.retries) : ""));
  truth_.submitted(worker.host.number, submission);
  const std::uint64_t number = expect_answer(worker, "submit of " + prompt, seconds(25));
  as(worker, [&] {
    worker.daemon->queue().submit(
        submission,
        [this, prompt, number, host = worker.host.number,
         process = worker.process.get()](const tl::expected<task::Accepted, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          note(prompt + (answer ? " is " + task::to_text(answer->id) : " is refused: " + answer.error().message()));
          if (answer) return truth_.accepted(prompt, answer->id);
          truth_.refused(host, prompt, answer.error());
        },
        {});
  });
}

void ClusterSimulation::cancel(Worker& worker, task::TaskId id) {
  note("cancel " + task::to_text(id) + " by " + worker.host.name);
  truth_.asked_to_cancel(id);
  const std::uint64_t number = expect_answer(worker, "cancel of " + task::to_text(id), seconds(15));
  as(worker, [&] {
    worker.daemon->queue().cancel(id, [this, id, number, host = worker.host.number,
                                       process = worker.process.get()](const tl::expected<void, rpc::Error>& answer) {
      if (process->dead) return;
      take_answer(number);
      note("cancel of " + task::to_text(id) + (answer ? " is acknowledged" : " is refused"));
      answer ? truth_.cancelled(id) : truth_.not_cancelled(host, id, answer.error());
    });
  });
}

void ClusterSimulation::wait(Worker& worker) {
  const task::TaskId id = some_task();
  const base::Duration limit = seconds(chance_.below(60));
  const base::TimePoint over = machine_.clock().now() + limit;
  const std::uint64_t number = expect_answer(worker, "wait for " + task::to_text(id), limit + seconds(25));
  as(worker, [&] {
    worker.daemon->queue().wait(id, limit,
                                [this, id, number, over, host = worker.host.number,
                                 process = worker.process.get()](const tl::expected<task::Task, rpc::Error>& answer) {
                                  if (process->dead) return;
                                  take_answer(number);
                                  truth_.waited(host, id, machine_.clock().now() >= over, answer);
                                });
  });
}

}  // namespace duet::simulate
