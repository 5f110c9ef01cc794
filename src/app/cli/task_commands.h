#pragma once

#include <string_view>

#include "app/cli/command_table.h"

/// The part of the command table that is about tasks and messages.
namespace duet::app::entries {

inline constexpr std::string_view states[] = {"queued", "running", "completed", "failed", "cancelled"};
inline constexpr std::string_view live_states[] = {"queued", "running"};

inline constexpr OptionEntry agent_option{
    .name = "agent", .value = "A", .summary = "Which agent does it; else the default one", .kind = ValueKind::agent};
inline constexpr OptionEntry follow_option{
    .letter = 'f', .name = "follow", .summary = "Print the output as it comes, until the task ends"};
inline constexpr std::string_view ended_states[] = {"completed", "failed", "cancelled"};
inline constexpr std::string_view lost_choices[] = {"fail", "retry"};
inline constexpr std::string_view orders[] = {"newest", "oldest", "priority", "ended"};

inline constexpr OptionEntry group_option{
    .name = "group", .value = "G", .summary = "The group whose limits count; else default", .kind = ValueKind::group};
inline constexpr OptionEntry delay_option{.name = "delay",
                                          .value = "TIME",
                                          .summary = "Start it so much later: 90s, 5m, 1h, 2d",
                                          .kind = ValueKind::duration,
                                          .least = 0};
inline constexpr OptionEntry at_option{
    .name = "at",
    .value = "WHEN",
    .summary = "Start it then: 14:00, 'tomorrow 9:30', '2026-11-17 14:00', 2026-11-17T14:00:00Z, +2h"};
inline constexpr OptionEntry folder_option{
    .name = "cwd",
    .value = "DIR",
    .summary = "Where the task works; else the current folder, if that is in the project, or the project's own",
    .kind = ValueKind::folder};
inline constexpr OptionEntry format_option{
    .name = "format",
    .value = "TEXT",
    .summary =
        "Print a line of this text for each task: '{id} {state}'; {error.reason} is inside error, {{ is a brace"};

inline constexpr OptionEntry submit_options[] = {
    agent_option,
    {.name = "priority", .value = "N", .summary = "Higher runs first; 0 if not given", .kind = ValueKind::number},
    {.name = "key", .value = "K", .summary = "Submitting the same key again gives the same task"},
    {.name = "time-limit",
     .value = "TIME",
     .summary = "End the task when it has run so long: 90s, 5m, 1h; a bare number is seconds",
     .kind = ValueKind::duration,
     .least = 1},
    {.name = "retries",
     .value = "N",
     .summary = "Try again so often after a failure; 0 if not given",
     .kind = ValueKind::number,
     .least = 0,
     .most = 1'000'000},
    {.name = "after",
     .value = "ID",
     .summary = "Wait for that task to succeed; may be repeated",
     .kind = ValueKind::task,
     .repeatable = true},
    {.name = "env",
     .value = "NAME=VALUE",
     .summary = "Put this into the task's environment; may be repeated",
     .kind = ValueKind::pair,
     .repeatable = true},
    folder_option,
    {.name = "memory",
     .value = "SIZE",
     .summary = "End the task when its processes need more together: 512M, 2G",
     .kind = ValueKind::bytes,
     .least = 4 << 20},
    {.name = "processes",
     .value = "N",
     .summary = "At most so many processes and threads at once",
     .kind = ValueKind::number,
     .least = 1},
    {.name = "cpu",
     .value = "CORES",
     .summary = "At most so many cores' worth of time, as in 1.5",
     .kind = ValueKind::decimal},
    group_option,
    delay_option,
    at_option,
    {.name = "label",
     .value = "NAME=VALUE",
     .summary = "Mark the task, so that it can be listed by it; may be repeated",
     .kind = ValueKind::pair,
     .repeatable = true},
    {.name = "on-lost",
     .value = "fail|retry",
     .summary = "If the machine that runs it is lost: the task has failed, or runs again elsewhere; of a shared queue",
     .choices = lost_choices},
    {.name = "needs",
     .value = "LABEL",
     .summary = "Run it on a machine with this label only; name=NAME is one that each has; may be repeated",
     .repeatable = true},
    {.name = "here", .summary = "Run it on the daemon's own machine only, in any folder, with the PATH of this shell"},
    follow_option,
    format_option,
};
inline constexpr OptionEntry edit_options[] = {
    {.name = "prompt", .value = "TEXT", .summary = "What the agent is to do; - reads it from stdin"},
    {.name = "priority", .value = "N", .summary = "Higher runs first", .kind = ValueKind::number},
    {.name = "group", .value = "G", .summary = "The group whose limits count", .kind = ValueKind::group},
    {.name = "delay",
     .value = "TIME",
     .summary = "Start it so much later, from now on; 0 takes the delay away",
     .kind = ValueKind::duration,
     .least = 0},
    at_option,
    {.name = "after",
     .value = "ID",
     .summary = "Wait for that task to succeed, instead of those before; may be repeated; none: for nobody",
     .kind = ValueKind::task,
     .repeatable = true},
    {.name = "label",
     .value = "NAME=VALUE",
     .summary = "Mark the task; NAME= takes the mark away; may be repeated",
     .kind = ValueKind::pair,
     .repeatable = true},
    format_option,
};
inline constexpr OptionEntry restart_options[] = {
    {.name = "in-place", .summary = "Queue the same task again instead of a new one"},
    follow_option,
    format_option,
};
inline constexpr OptionEntry clean_options[] = {
    {.name = "state", .value = "S", .summary = "Only completed, failed or cancelled ones", .choices = ended_states},
    {.name = "older",
     .value = "TIME",
     .summary = "Only those that ended longer ago: 1h, 7d",
     .kind = ValueKind::duration,
     .least = 0},
};
inline constexpr OptionEntry list_options[] = {
    {.name = "state",
     .value = "S",
     .summary = "Only queued, running, completed, failed or cancelled ones",
     .choices = states},
    {.name = "limit",
     .value = "N",
     .summary = "At most so many; 20 if not given",
     .kind = ValueKind::number,
     .least = 1,
     .most = 10'000},
    {.name = "group", .value = "G", .summary = "Only those of that group", .kind = ValueKind::group},
    {.name = "agent", .value = "A", .summary = "Only those of that agent", .kind = ValueKind::agent},
    {.name = "label",
     .value = "NAME=VALUE",
     .summary = "Only those with that label; may be repeated",
     .kind = ValueKind::pair,
     .repeatable = true},
    {.name = "since",
     .value = "WHEN",
     .summary = "Only those submitted since: 2h, 14:00, yesterday, '2026-11-16 9:00'"},
    {.name = "before", .value = "ID", .summary = "Go on behind that task", .kind = ValueKind::task},
    {.name = "sort",
     .value = "S",
     .summary = "newest, oldest, priority or ended (the last one first); newest if not given",
     .choices = orders},
    {.name = "columns",
     .value = "LIST",
     .summary = "What to show, such as id,state,ran,prompt; else what the terminal has room for"},
    {.letter = 'w', .name = "watch", .summary = "Show it again whenever something changes, until ^C"},
    format_option,
};
inline constexpr OptionEntry one_format[] = {format_option};
inline constexpr OptionEntry cancel_options[] = {
    {.name = "all", .summary = "All that have not ended"},
    {.name = "state",
     .value = "S",
     .summary = "With --all: only the queued or the running ones",
     .choices = live_states},
    format_option,
};
inline constexpr OptionEntry output_options[] = {
    follow_option,
    {.name = "stdout", .summary = "Only what it wrote to stdout"},
    {.name = "stderr", .summary = "Only what it wrote to stderr"},
    {.name = "tail",
     .value = "BYTES",
     .summary = "Begin so many bytes before the end: 2000, 64K, 1M",
     .kind = ValueKind::bytes,
     .least = 0},
};
inline constexpr OptionEntry chat_options[] = {
    agent_option,
    {.name = "priority", .value = "N", .summary = "Higher runs first; 5 if not given", .kind = ValueKind::number},
    folder_option,
    follow_option,
    format_option,
};

inline constexpr ArgumentEntry prompt_argument[] = {{.name = "PROMPT", .count = ArgumentEntry::Count::many}};
inline constexpr ArgumentEntry message_argument[] = {{.name = "MESSAGE", .count = ArgumentEntry::Count::many}};
inline constexpr ArgumentEntry task_argument[] = {{.name = "ID", .kind = ValueKind::task}};
inline constexpr ArgumentEntry tasks_argument[] = {
    {.name = "ID", .kind = ValueKind::task, .count = ArgumentEntry::Count::many}};
inline constexpr ArgumentEntry live_tasks_argument[] = {
    {.name = "ID", .kind = ValueKind::live_task, .count = ArgumentEntry::Count::many}};
inline constexpr ArgumentEntry live_task_argument[] = {{.name = "ID", .kind = ValueKind::live_task}};
inline constexpr ArgumentEntry ended_tasks_argument[] = {
    {.name = "ID", .kind = ValueKind::ended_task, .count = ArgumentEntry::Count::many}};
inline constexpr ArgumentEntry group_argument[] = {
    {.name = "GROUP", .kind = ValueKind::group, .count = ArgumentEntry::Count::optional}};
inline constexpr ArgumentEntry agent_argument[] = {{.name = "NAME", .kind = ValueKind::agent}};
inline constexpr ArgumentEntry cancel_argument[] = {
    {.name = "ID", .kind = ValueKind::live_task, .count = ArgumentEntry::Count::any}};

inline constexpr CommandEntry task_commands[] = {
    {.path = "task",
     .summary = "Submit, watch and cancel tasks",
     .details = "Tasks are kept by the daemon. Once accepted they survive its end and its start; a running one goes on "
                "meanwhile. An ID may be written as its number: 3 is task-3.",
     .group = true},
    {.path = "task submit",
     .summary = "Hand a task to an agent",
     .details =
         "Hands a task to an agent and prints its id. The words of PROMPT are joined by blanks; after -- they may "
         "begin with a hyphen, and a single - reads them from stdin. The task works in the current folder, or in that "
         "of the project if the current one is outside of it, with the current PATH (in a shared "
         "queue: its worker's, unless --here is given).\n"
         "With --follow the output is printed as it comes, and the exit code is the task's own: 123 if the command "
         "itself failed, 124 if the time of --timeout is over.",
     .arguments = prompt_argument,
     .options = submit_options,
     .client = true,
     .ends_with_task = true},
    {.path = "task list",
     .summary = "Show the newest tasks",
     .details = "Shows the newest tasks. A wide terminal shows more of them.\n"
                "The columns are id, state, agent, group, priority, labels, created, started, ended, ran, attempts, "
                "pid, exit, key, folder, after, error, prompt and output.",
     .options = list_options,
     .client = true},
    {.path = "task get",
     .summary = "Show one task",
     .details = "Shows everything that is known about a task.",
     .arguments = task_argument,
     .options = one_format,
     .client = true},
    {.path = "task cancel",
     .summary = "End tasks",
     .details = "Ends tasks, waiting or running, with every process they have started. Says of each whether it is "
                "cancelled, or cancelling because it still runs. With --all the waiting ones are ended first, so that "
                "none of them takes the place of a running one.",
     .arguments = cancel_argument,
     .options = cancel_options,
     .client = true},
    {.path = "task stats",
     .summary = "Count the tasks",
     .details = "Counts the tasks in each state.",
     .options = one_format,
     .client = true},
    {.path = "task wait",
     .summary = "Wait until tasks have ended",
     .details = "Waits until the tasks have ended and exits with their exit code: 128 and the signal's number for one "
                "that was killed, 130 for one that was cancelled; of several, the first that is not 0. On a terminal "
                "it shows how many are done and what runs.\n"
                "It exits with 123 if the command itself failed, and with 124 if the time of --timeout is over.",
     .arguments = live_tasks_argument,
     .options = one_format,
     .client = true,
     .ends_with_task = true},
    {.path = "task output",
     .summary = "Print what tasks have written",
     .details =
         "Prints what a task has written, byte for byte. Where more than 64 MiB came, the middle is missing and a "
         "line says how much. Of several tasks each line begins with the task's id.\n"
         "With --follow it goes on until the tasks end, and exits with their exit code; of several, the first that is "
         "not 0; with 123 if the command itself failed, with 124 if the time of --timeout is over.",
     .arguments = tasks_argument,
     .options = output_options,
     .client = true,
     .ends_with_task = true},
};

inline constexpr CommandEntry task_change_commands[] = {
    {.path = "task explain",
     .summary = "Say why a task does not run",
     .details = "Says what a task waits for, and what would change that.",
     .arguments = task_argument,
     .client = true},
    {.path = "task hold",
     .summary = "Keep queued tasks from starting",
     .details = "Keeps queued tasks from starting until they are released.",
     .arguments = live_tasks_argument,
     .client = true},
    {.path = "task release",
     .summary = "Let tasks start that were held",
     .details = "Lets tasks start that were held.",
     .arguments = live_tasks_argument,
     .client = true},
    {.path = "task edit",
     .summary = "Change a queued task",
     .details =
         "Changes what the options say of a queued task. Without any it opens what can be changed in $VISUAL, $EDITOR "
         "or vi; a text that is left as it was changes nothing, and one that is refused is kept.",
     .arguments = live_task_argument,
     .options = edit_options,
     .client = true},
    {.path = "task restart",
     .summary = "Run a task again",
     .details = "Submits a task with the same parameters and prints its id. With --in-place a task that has ended is "
                "queued again under its own id, and its attempts go on counting.\n"
                "With --follow the exit code is the task's own: 123 if the command itself failed, 124 if the time of "
                "--timeout is over.",
     .arguments = task_argument,
     .options = restart_options,
     .client = true,
     .ends_with_task = true},
    {.path = "task remove",
     .summary = "Forget tasks that have ended",
     .details = "Removes tasks that have ended, with their output. One that others come after stays, and so does one "
                "that has not ended; the exit code is 1 then.",
     .arguments = ended_tasks_argument,
     .client = true},
    {.path = "task clean",
     .summary = "Forget all tasks that have ended",
     .details = "Removes all tasks that have ended, with their output, but those that others come after.",
     .options = clean_options,
     .client = true},
};

inline constexpr CommandEntry queue_commands[] = {
    {.path = "queue",
     .summary = "Pause and resume the queue",
     .details = "All of the queue, or one group of tasks. It stays paused over restarts.",
     .group = true},
    {.path = "queue pause",
     .summary = "Start nothing new",
     .details = "Lets nothing new start, of all tasks or of a group's. What runs goes on.",
     .arguments = group_argument,
     .client = true},
    {.path = "queue resume",
     .summary = "Start tasks again",
     .details = "Lets tasks start again, all or a group's. A group that was paused by its name stays so.",
     .arguments = group_argument,
     .client = true},
    {.path = "queue status",
     .summary = "Show the queue and its groups",
     .details = "Shows whether the queue and its groups are paused, how many tasks run and how many wait, and which "
                "agents are held.",
     .arguments = group_argument,
     .client = true},
};

inline constexpr CommandEntry agent_commands[] = {
    {.path = "agent",
     .summary = "Show the agents and release one",
     .details = "Agents are the programs that do tasks. One that reached a limit of its own is held for a while.",
     .group = true},
    {.path = "agent list",
     .summary = "Show the agents",
     .details = "Shows the agents, what they do and which of them are held.",
     .client = true},
    {.path = "agent release",
     .summary = "Let an agent work that is held",
     .details = "Lets an agent work at once that is held until later.",
     .arguments = agent_argument,
     .client = true},
};

inline constexpr CommandEntry chat_commands[] = {
    {.path = "chat",
     .summary = "Send a message to an agent",
     .details = "Messages to the default agent, or to another one.",
     .group = true},
    {.path = "chat send",
     .summary = "Send a message as a task",
     .details =
         "Submits a message to the default agent as a task and prints the task's id. The words are joined by blanks; "
         "after -- they may begin with a hyphen, and a single - reads them from stdin. It works where task submit "
         "would.\n"
         "With --follow the output is printed as it comes, and the exit code is the task's own: 123 if the command "
         "itself failed, 124 if the time of --timeout is over.",
     .arguments = message_argument,
     .options = chat_options,
     .client = true,
     .ends_with_task = true},
};

}  // namespace duet::app::entries
