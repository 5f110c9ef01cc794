#include "automation/note.h"

#include "duet/rpc/value.h"

namespace duet::automation {

void Note::write(task::StoreWriter& writer, task::TaskId task) const {
  for (const auto& [name, value] : values_) value ? writer.remember(name, *value) : writer.forget(name);
  for (const Firing& firing : firings_) {
    Firing kept = firing;
    if (task != 0) kept.task_id = task::to_text(task);
    writer.remember(name_of(kept), save_firing(kept));
  }
  for (const auto& [kind, params] : told_) {
    boost::json::object told = params;
    if (task != 0) told["taskId"] = task::to_text(task);
    writer.tell(kind, task, rpc::to_text(told));
  }
}

}  // namespace duet::automation
