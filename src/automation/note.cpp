#include "automation/note.h"

#include "duet/rpc/value.h"

namespace duet::automation {

std::size_t Note::bytes() const {
  constexpr std::size_t each = 64;  // a text's own, and what holds it
  std::size_t sum = 0;
  for (const auto& [name, value] : values_) sum += 2 * each + name.size() + (value ? value->size() : 0);
  for (const std::string& name : along_.dropped) sum += each + name.size();
  for (const std::vector<Firing>* firings : {&held_, &firings_}) {
    for (const Firing& firing : *firings) {
      sum += sizeof firing + firing.rule_id.size() + firing.reason.size() + firing.cause.size();
      if (firing.awaiting) sum += rpc::to_text(save_work(*firing.awaiting)).size();
    }
  }
  for (const auto& [kind, params] : told_) sum += 2 * each + kind.size() + rpc::to_text(params).size();
  return sum;
}

void Note::write(task::StoreWriter& writer, task::TaskId task) const {
  for (const auto& [name, value] : values_) value ? writer.remember(name, *value) : writer.forget(name);
  for (const std::string& name : along_.dropped) writer.forget(name);
  for (const Firing& firing : held_) writer.remember(name_of(firing), save_firing(firing));
  for (const Firing& firing : firings_) {
    Firing kept = firing;
    if (task != 0) kept.task_id = task::to_text(task);
    writer.remember(name_of(kept), save_firing(kept));
  }
  for (const auto& [kind, params] : told_) {
    boost::json::object told = params;
    if (task != 0) told["taskId"] = task::to_text(task);
    writer.tell(kind, task, rpc::ObjectText(rpc::to_text(told)));
  }
}

}  // namespace duet::automation
