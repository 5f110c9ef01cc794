#include "task/postgres/worker_memory.h"

#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/value.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {

std::string memory_text(const WorkerMemory& memory) {
  const boost::json::array before(memory.before.begin(), memory.before.end());
  rpc::ObjectText text;
  text.add("queue", memory.queue).add("place", memory.place).add("worker", memory.worker);
  text.add("incarnation", memory.incarnation).add_json("before", rpc::to_text(before));
  text.add("next", memory.next);
  text.add("system", memory.system).add("timeline", memory.timeline).add("newestEventMs", memory.newest_event_ms);
  text.add("leaseMs", memory.lease_ms);
  return text.take() + "\n";
}

std::optional<WorkerMemory> memory_of(std::string_view text) {
  if (!rpc::is_valid_json(text)) return std::nullopt;
  const boost::json::value parsed = rpc::parse_value(text);
  if (!parsed.is_object() || !parsed.get_object().contains("queue")) return std::nullopt;
  const boost::json::object& saved = parsed.get_object();
  std::vector<std::string> before;
  for (const boost::json::value& each : array_in(saved, "before")) {
    if (each.is_string()) before.emplace_back(each.get_string());
  }
  return WorkerMemory{.queue = text_in(saved, "queue"),
                      .place = text_in(saved, "place"),
                      .worker = number_in(saved, "worker"),
                      .incarnation = text_in(saved, "incarnation"),
                      .before = std::move(before),
                      .next = text_in(saved, "next"),
                      .system = text_in(saved, "system"),
                      .timeline = number_in(saved, "timeline"),
                      .newest_event_ms = number_in(saved, "newestEventMs"),
                      .lease_ms = number_in(saved, "leaseMs")};
}

}  // namespace duet::task::postgres
