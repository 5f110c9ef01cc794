#include "app/daemon/shared_queue.h"

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "app/project/failure.h"
#include "duet/base/fd.h"
#include "duet/version.h"
#include "task/postgres/worker_memory.h"
#include "task/store_secrets.h"

namespace duet::app {
namespace {

constexpr std::size_t journal_bytes = std::size_t{48} << 20U;  // some 100,000 events, if anybody asks that far back

// Where the state folder is: a copy of it on this machine or another one is somewhere else.
std::string place_of(const StateFolder& folder) {
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  struct stat status {};
  base::check_call(fstat(folder.descriptor(), &status), "the state folder");
  return machine + ":" + std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

task::postgres::StoreAddress address_of(const task::ClusterSettings& cluster) {
  const auto parsed = [&] {
    try {
      return task::postgres::StoreAddress::parse(*cluster.store, {cluster.name, cluster.insecure});
    } catch (const std::runtime_error& missing) {  // libpq itself
      throw Failure(std::string("store: ") + missing.what());
    }
  };
  auto address = parsed();
  if (!address) throw Failure("store: " + address.error());
  return std::move(*address);
}

void refuse_unfinished(task::Store& store) {
  const auto counts = store.read([](task::StoreReader& reader) { return reader.counts(); });
  if (!counts) throw Failure("tasks.db: " + counts.error().message());
  const std::int64_t unfinished = (*counts)[0] + (*counts)[1];
  if (unfinished > 0) throw Failure(task::unfinished_text(unfinished));
}

task::Lease open_lease(int tasks) {
  try {
    return task::Lease(tasks);
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    throw Failure("cannot keep the worker's lease: " + error.code().message() +
                      (base::is_disk_full(code) ? ": make room on its disk" : ""),
                  code_of_refused_start(code));
  }
}

}  // namespace

bool is_copied_worker(const StateFolder& folder) {
  const auto memory = task::postgres::memory_of(folder.read_small(task::postgres::memory_file));
  return memory && !memory->place.empty() && memory->place != place_of(folder);
}

SharedQueue::SharedQueue(transport::Loop& loop, base::Log& log, const Context& context, task::Store& store,
                         task::TaskSettings settings, task::ClusterSettings cluster,
                         task::postgres::PostgresQueue::Tells tells)
    : loop_(loop),
      log_(log),
      lease_(open_lease(context.tasks)),
      journal_(task::Journal::Limits{.bytes = journal_bytes}) {
  refuse_unfinished(store);
  const task::postgres::StoreAddress address = address_of(cluster);
  address_ = address.text();
  has_several_hosts_ = address.hosts().size() > 1;
  database_ = std::make_unique<task::postgres::Database>(loop, address, cluster.schema);
  task::postgres::PostgresQueue::Options options{
      .tasks = context.tasks,
      .project = context.project,
      .environment = task::without_store_secrets(context.environment),
      .provide_for = context.provide_for,
      .seed = std::random_device()(),
      .place = place_of(context.folder),
      .version = kVersion,
      .limits = context.limits,
      .boottime = [] { return std::chrono::duration_cast<base::Duration>(task::BootClock::now().time_since_epoch()); },
      .read_memory = [&folder = context.folder] { return folder.read_small(task::postgres::memory_file); },
      .write_memory =
          [this, &folder = context.folder](const std::string& text) {
            try {
              folder.write_small(task::postgres::memory_file, text);
              not_remembered_.reset();
              return true;
            } catch (const Failure& failure) {  // a full disk, say: it is tried again
              not_remembered_ = failure;
              log_.error("who this worker is cannot be written down", {{"reason", failure.what()}});
              return false;
            }
          },
      .extend =
          [this](base::Duration deadline, base::Duration lease) {
            const task::BootTime until{std::chrono::duration_cast<task::BootClock::duration>(deadline)};
            if (!lease_.extend(until, lease)) log_.error("the worker's lease cannot be written: leased tasks will end");
          }};
  queue_ = std::make_unique<task::postgres::PostgresQueue>(loop, log, *database_, store, journal_, std::move(settings),
                                                           std::move(cluster), std::move(options), std::move(tells));
}

void SharedQueue::join(task::Runner& runner, const std::vector<task::RunId>& recorded) {
  if (queue_->is_copy()) log_.warn(copied_worker_text);
  queue_->begin(runner, recorded);
  queue_->start();
  JoinWait wait(loop_.now(), {.was_joined = queue_->was_joined(), .has_several_hosts = has_several_hosts_});
  const auto look = [this, &wait] {
    return wait.look(loop_.now(),
                     {.joined = queue_->is_joined(),
                      // Who has been a worker waits: a login that is refused for a while may come back.
                      .refused = queue_->is_refused() || (!queue_->was_joined() && database_->is_turned_away()),
                      .unwritten = not_remembered_.has_value()});
  };
  std::optional<JoinWait::End> end = look();
  for (; !end; end = look()) loop_.turn(wait.until());
  take(*end);
}

void SharedQueue::take(JoinWait::End end) const {
  const std::string why = queue_->trouble().empty() ? "it does not answer" : queue_->trouble();
  const std::string text = "cannot join the queue at " + address_ + ": " + why;
  switch (end) {
    case JoinWait::End::joined:
      return;
    case JoinWait::End::unwritten:
      throw Failure(*not_remembered_);
    case JoinWait::End::goes_on_without:
      return log_.warn("the daemon goes on without its queue, and joins it when it can",
                       {{"queue", address_}, {"why", why}});
    case JoinWait::End::refused:
      throw Failure(text);
    case JoinWait::End::no_answer:
      throw Failure(text, exit_code::try_again);
  }
}

}  // namespace duet::app
