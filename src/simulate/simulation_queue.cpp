#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulate/simulation.h"

// What clients do with the queue: they pause it, and hold, edit, restart and remove tasks.

namespace duet::simulate {

namespace {

constexpr std::chrono::seconds hold_length{30};

}  // namespace

void Simulation::set_habits_of_queue() {
  task::Agent agent{.command = {"play"}, .prompt_on_stdin = true};
  settings_.agents[usual_agent] = agent;
  agent.hold = task::UsageHold{.exit_codes = {usage_limit_code}, .length = hold_length};
  agent.max_running = 2;
  settings_.agents[limited_agent] = agent;
  settings_.default_agent = usual_agent;
  settings_.groups[narrow_group] = {.max_running = 1};
  settings_.groups[wide_group] = {};
}

void Simulation::act_on_queue() {
  switch (chance_.below(8)) {
    case 0:
    case 1:
      return pause();
    case 2:
      return hold(some_task(), true);
    case 3:
      return hold(some_task(), false);
    case 4:
      return edit();
    case 5:
      return restart();
    case 6:
      return remove();
    default:
      release_agent();
  }
}

void Simulation::pause() {
  std::optional<std::string> group;
  if (chance_.one_in(2)) group = chance_.one_in(2) ? wide_group : narrow_group;
  // More often resumed than paused: else nothing would happen any more.
  set_paused(group, chance_.one_in(3));
}

void Simulation::set_paused(const std::optional<std::string>& group, bool paused) {
  const std::string name = group ? ControlTruth::group(*group) : ControlTruth::whole_queue();
  const std::string what = (paused ? "pause of " : "resume of ") + name;
  const std::uint64_t asked = model_.control().asked(name, paused);
  const std::uint64_t number = ++requests_;
  note(what);
  expect_answer(number, what, true);
  as_daemon([&] {
    daemon_->supervisor().gate().set_paused(group, paused,
                                            [this, name, what, asked, paused, number,
                                             process = process_.get()](const tl::expected<bool, rpc::Error>& answer) {
                                              if (process->dead) return;
                                              take_answer(number);
                                              note(what + (answer ? " is acknowledged" : " is refused"));
                                              if (answer) return model_.control().answered(name, asked, paused);
                                              judge(what, answer.error());
                                            });
  });
}

void Simulation::hold(task::TaskId id, bool held) {
  const std::string name = ControlTruth::task(id);
  const std::string what = (held ? "hold of " : "release of ") + name;
  const std::uint64_t asked = model_.control().asked(name, held);
  const std::uint64_t number = ++requests_;
  if (held) model_.touches(id);
  note(what);
  expect_answer(number, what, true);
  as_daemon([&] {
    daemon_->supervisor().set_held(id, held,
                                   [this, id, name, what, asked, held, number,
                                    process = process_.get()](const tl::expected<bool, rpc::Error>& answer) {
                                     if (process->dead) return;
                                     take_answer(number);
                                     note(what + (answer ? " is acknowledged" : " is refused"));
                                     if (!answer) return judge(what, answer.error());
                                     if (held) model_.touches(id);  // it may have been queued since this was asked
                                     model_.control().answered(name, asked, held);
                                   });
  });
}

void Simulation::edit() {
  task::Supervisor::Edit edit{.priority = static_cast<std::int64_t>(chance_.below(3))};
  if (chance_.one_in(2)) edit.group = chance_.one_in(2) ? wide_group : task::default_group;
  if (chance_.one_in(3)) {
    edit.after.emplace();
    for (std::uint64_t i = chance_.below(3); i > 0; --i) edit.after->push_back(some_task());
  }
  send_edit(some_task(), edit);
}

void Simulation::send_edit(task::TaskId id, const task::Supervisor::Edit& edit) {
  const std::string what = "edit of " + task::to_text(id);
  const std::uint64_t number = ++requests_;
  model_.editing(id);
  if (edit.after) model_.editing_after(id, *edit.after);
  note(what);
  expect_answer(number, what, true);
  as_daemon([&] {
    daemon_->supervisor().edit(
        id, edit,
        [this, id, what, edit, number, process = process_.get()](const tl::expected<task::Task, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          note(what + (answer ? " is acknowledged" : " is refused"));
          model_.control().edited(id, answer.has_value(), answer ? answer->group : "");
          if (edit.after) model_.edited_after(id, answer ? edit.after : std::nullopt);
          if (!answer) return judge(what, answer.error());
          const bool is_right =
              (!edit.priority || answer->priority == *edit.priority) && (!edit.group || answer->group == *edit.group);
          if (!is_right) model_.fail(what + " was acknowledged, but it is not as it should be");
        });
  });
}

// Where rules go on from what has ended each end would have a task of its own, of the same name.
void Simulation::restart() {
  const std::vector<task::TaskId> ended = model_.ended_tasks();
  if (ended.empty() || !rules_.empty()) return;
  const task::TaskId id = ended[chance_.below(ended.size())];
  const std::string what = "restart of " + task::to_text(id);
  const std::uint64_t number = ++requests_;
  model_.restarting(id);
  note(what);
  expect_answer(number, what, true);
  as_daemon([&] {
    daemon_->supervisor().restart_in_place(
        id, [this, what, number, process = process_.get()](const tl::expected<task::Accepted, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          note(what + (answer ? " is acknowledged" : " is refused"));
          if (!answer) judge(what, answer.error());
        });
  });
}

void Simulation::remove() {
  std::vector<task::TaskId> ids;
  for (std::uint64_t i = chance_.between(1, 3); i > 0; --i) ids.push_back(some_task());
  std::string what = "remove of";
  for (const task::TaskId id : ids) what += ' ' + task::to_text(id);
  const std::uint64_t number = ++requests_;
  note(what);
  expect_answer(number, what, true);
  as_daemon([&] {
    daemon_->supervisor().remove(
        std::move(ids), [this, what, number,
                         process = process_.get()](const tl::expected<task::Supervisor::Removal, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          note(what + (answer ? " is done" : " is refused"));
          if (!answer) judge(what, answer.error());
        });
  });
}

void Simulation::release_agent() {
  const std::uint64_t number = ++requests_;
  note("the agent is released");
  model_.control().agent_released(limited_agent);
  expect_answer(number, "release of the agent", true);
  as_daemon([&] {
    daemon_->supervisor().gate().release(
        limited_agent, [this, number, process = process_.get()](const tl::expected<bool, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          if (!answer) judge("release of the agent", answer.error());
        });
  });
}

// At the end of the simulation, so that all that waits can go on.
void Simulation::open_all() {
  let_pass(std::chrono::seconds(10));  // a daemon that has just started learns what became of runs that left a record
  while (!model_.violation() && (!daemon_ || stopping_)) live_on();
  if (model_.violation()) return;
  set_paused(std::nullopt, false);
  for (const char* group : {narrow_group, wide_group}) set_paused(std::string(group), false);
  for (const task::TaskId id : model_.all_tasks()) {
    hold(id, false);
    // The clock on the wall may have been set back by days since somebody wanted it to start at a time.
    model_.control().queued_again(id);
    send_edit(id, {.delay = std::chrono::milliseconds(0)});
  }
}

}  // namespace duet::simulate
