#include "app/metrics/prometheus.h"

#include <optional>
#include <string_view>

#include "duet/rpc/json_write.h"

namespace duet::app {
namespace {

void append_head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help).append("\n");
  out.append("# TYPE ").append(name).append(" ").append(type).append("\n");
}

void append_whole(std::string& out, std::string_view name, std::string_view type, std::uint64_t value,
                  std::string_view help) {
  append_head(out, name, type, help);
  out.append(name).append(" ").append(std::to_string(value)).append("\n");
}

void append_count(std::string& out, std::string_view name, std::uint64_t value, std::string_view help) {
  append_whole(out, name, "counter", value, help);
}

void append_level(std::string& out, std::string_view name, std::uint64_t value, std::string_view help) {
  append_whole(out, name, "gauge", value, help);
}

void append_end_count(std::string& out, std::string_view state, std::uint64_t value) {
  out.append("duet_tasks_ended_total{state=\"").append(state).append("\"} ").append(std::to_string(value)).append("\n");
}

void append_time(std::string& out, std::string_view name, std::string_view percentile, std::optional<double> seconds) {
  out.append(name).append("{percentile=\"").append(percentile).append("\"} ");
  if (seconds) {
    rpc::append_json(out, *seconds);
  } else {
    out.append("NaN");
  }
  out.append("\n");
}

std::optional<double> in_seconds(std::optional<double> value, double unit) {
  return value ? std::optional(*value * unit) : std::nullopt;
}

}  // namespace

std::string prometheus_text(const PrometheusSample& sample) {
  constexpr double turn = turn_time_unit * 1e-6;
  constexpr double milli = 1e-3;
  const MetricSlot& recent = sample.recent;
  std::string out;
  append_level(out, "duet_start_time_seconds", sample.began, "When the daemon began, in seconds since 1970.");
  append_level(out, "duet_memory_bytes", sample.memory, "Memory that is resident.");
  append_level(out, "duet_clients", sample.now.clients.last, "Connections that speak JSON-RPC.");
  append_count(out, "duet_requests_total", sample.totals.requests, "Requests and notifications that were handled.");
  append_head(out, "duet_request_seconds", "gauge", "How long requests took, in the last 5 minutes.");
  append_time(out, "duet_request_seconds", "50", in_seconds(recent.request_times.quantile(0.5), turn));
  append_time(out, "duet_request_seconds", "99", in_seconds(recent.request_times.quantile(0.99), turn));
  append_head(out, "duet_loop_lag_seconds", "gauge", "How long turns of the loop took, in the last 5 minutes.");
  append_time(out, "duet_loop_lag_seconds", "99", in_seconds(recent.turn_times.quantile(0.99), turn));
  append_level(out, "duet_tasks_queued", sample.now.queued.last, "Tasks that wait.");
  append_level(out, "duet_tasks_running", sample.now.running.last, "Tasks that run.");
  append_count(out, "duet_tasks_submitted_total", sample.totals.submitted, "Tasks that were accepted.");
  append_head(out, "duet_tasks_ended_total", "counter", "Tasks that have ended, by how.");
  append_end_count(out, "completed", sample.totals.completed);
  append_end_count(out, "failed", sample.totals.failed);
  append_end_count(out, "cancelled", sample.totals.cancelled);
  append_head(out, "duet_task_wait_seconds", "gauge", "How long tasks waited that began in the last 5 minutes.");
  append_time(out, "duet_task_wait_seconds", "50", in_seconds(recent.waits.quantile(0.5), milli));
  append_time(out, "duet_task_wait_seconds", "95", in_seconds(recent.waits.quantile(0.95), milli));
  append_head(out, "duet_task_run_seconds", "gauge", "How long tasks ran that ended in the last 5 minutes.");
  append_time(out, "duet_task_run_seconds", "50", in_seconds(recent.runs.quantile(0.5), milli));
  append_time(out, "duet_task_run_seconds", "95", in_seconds(recent.runs.quantile(0.95), milli));
  return out;
}

}  // namespace duet::app
