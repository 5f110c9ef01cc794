#pragma once

#include <string_view>

#include "app/cli/command_table.h"

namespace duet::app::entries {

/// The entries of `cluster`, for the command table alone.

inline constexpr std::string_view adopted_queues[] = {"run", "cancel"};

inline constexpr OptionEntry sql_option{
    .name = "sql", .summary = "Change nothing: print what it would do, for psql and whoever may do it"};
inline constexpr OptionEntry cluster_init_options[] = {sql_option};
inline constexpr OptionEntry cluster_migrate_options[] = {
    {.name = "finish",
     .summary = "Drop what only daemons of earlier releases used; refused while one of them is there"},
    sql_option,
};
inline constexpr OptionEntry cluster_adopt_options[] = {
    {.name = "queue",
     .value = "run|cancel",
     .summary = "What becomes of the tasks that it has queued: they run here, or are cancelled",
     .choices = adopted_queues},
    sql_option,
};
inline constexpr ArgumentEntry cluster_set_argument[] = {
    {.name = "NAME=VALUE", .kind = ValueKind::pair, .count = ArgumentEntry::Count::many}};
inline constexpr ArgumentEntry own_worker_argument[] = {{.name = "NAME", .count = ArgumentEntry::Count::optional}};
inline constexpr ArgumentEntry worker_argument[] = {{.name = "NAME"}};

inline constexpr std::string_view queue_from_here =
    "it goes to the database itself, with the settings of this machine: leave --connect out, or log in there";

inline constexpr CommandEntry cluster_commands[] = {
    {.path = "cluster",
     .summary = "Share one queue between machines",
     .details =
         "Daemons whose setting `store` names the same PostgreSQL database share a queue: submit anywhere, run "
         "anywhere, "
         "watch from anywhere. All of these but status go to the database themselves, as whoever the settings say.",
     .group = true},
    {.path = "cluster init",
     .summary = "Make the queue in the database",
     .details =
         "Makes the schema, its roles and the queue for the project that [cluster] names. It needs a role that may "
         "create roles, and schemas in this database. One that is there already is left as it is.",
     .options = cluster_init_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
    {.path = "cluster migrate",
     .summary = "Bring the queue up to this release",
     .details =
         "Adds to the schema what this release needs. Daemons of the last release go on meanwhile. It may run twice at "
         "once, and one that was interrupted is finished by running it again. When no daemon of the last release is "
         "left, "
         "--finish drops what only they used.",
     .options = cluster_migrate_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
    {.path = "cluster adopt",
     .summary = "Take over a copy of a queue",
     .details =
         "A queue that is found elsewhere than before (a restored dump or backup, a copied database, after pg_upgrade) "
         "is refused "
         "by every daemon, so that a copy never runs the tasks of the original. This says that it is the one to use. "
         "--queue must say what becomes of the tasks that are queued in it.",
     .options = cluster_adopt_options,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
    {.path = "cluster status",
     .summary = "Show the workers, what waits, and the database",
     .details =
         "Asks the daemon for the workers of its queue, for what waits and for whom, and for how the database is.",
     .client = true},
    {.path = "cluster set",
     .summary = "Change the settings of the queue",
     .details = "Changes queue_capacity, keep_days, keep_tasks or keep_output, which belong to the queue and count for "
                "all its "
                "daemons.",
     .arguments = cluster_set_argument,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
    {.path = "cluster drain",
     .summary = "Have a worker take nothing new",
     .details = "What it runs goes on. Without NAME it is this machine's.",
     .arguments = own_worker_argument,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
    {.path = "cluster undrain",
     .summary = "Have a worker take tasks again",
     .details = "Takes drain back. Without NAME it is this machine's.",
     .arguments = own_worker_argument,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
    {.path = "cluster forget",
     .summary = "Give up a worker that does not come back",
     .details =
         "Says that a silent worker is gone for good: what it ran is failed/lost at once, or queued again, instead of "
         "after lost_after. Of one that nobody has found silent the beat is watched for its lease: if it moves, the "
         "worker is live and stays. Say it only of a machine that is off: a process that still runs there is not ended "
         "by this.",
     .arguments = worker_argument,
     .client = true,
     .starts = StartsDaemon::never,
     .only_here = queue_from_here},
};

}  // namespace duet::app::entries
