#include "simulate/model_fate.h"

#include "task/postgres/report.h"

namespace duet::simulate {

using task::postgres::End;

Fate fate_of(const ModelTask& task, std::int64_t flags, bool is_ok, bool has_retry) {
  if (task.cancelling) return Fate::cancelled;
  const bool is_put_back = (flags & End::put_back) != 0;
  if (is_put_back && !task.announced) return Fate::put_back;
  if ((flags & End::by_stop) != 0) return Fate::stopped;
  if ((flags & End::lease_was_over) != 0) {
    return task.lost + 1 < ModelTask::most_lost ? Fate::spared : Fate::failed;
  }
  if (is_ok && !is_put_back) return Fate::completed;
  return has_retry && task.attempts - task.spared - task.lost <= task.retries ? Fate::again : Fate::failed;
}

bool is_end(Fate fate) { return fate != Fate::put_back && fate != Fate::spared && fate != Fate::again; }

ModelTask::State state_of(Fate fate, bool pause) {
  switch (fate) {
    case Fate::put_back:
      return pause ? ModelTask::waiting : ModelTask::ready;
    case Fate::spared:
      return ModelTask::ready;
    case Fate::again:
      return ModelTask::waiting;
    case Fate::completed:
      return ModelTask::completed;
    case Fate::cancelled:
      return ModelTask::cancelled;
    case Fate::stopped:
    case Fate::failed:
      break;
  }
  return ModelTask::failed;
}

}  // namespace duet::simulate
