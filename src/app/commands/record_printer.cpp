#include "app/commands/record_printer.h"

#include <unistd.h>

#include <utility>

#include "app/commands/commands.h"
#include "app/methods/task_results.h"
#include "app/project/failure.h"
#include "duet/rpc/value.h"

namespace duet::app {

std::vector<std::string_view> record_fields() {
  std::vector<std::string_view> names = member_names<TaskRecord>();
  names.insert(names.end(), {"error.reason", "error.message", "labels.", "metadata."});
  return names;
}

RecordPrinter::RecordPrinter(const CommandLine& line, const std::vector<std::string_view>& fields)
    : json_(line.flag("json")), harmless_(isatty(STDOUT_FILENO) == 1) {
  const std::optional<std::string> text = line.text("format");
  if (!text) return;
  if (json_) throw Failure("--json and --format exclude each other");
  tl::expected<RecordFormat, std::string> format = RecordFormat::parse(*text, fields);
  if (!format) throw Failure(format.error());
  format_ = std::move(*format);
}

void RecordPrinter::print(const std::string& result) const {
  if (json_) {
    print_text(result + '\n');
  } else {
    print_formatted(rpc::parse_value(result).as_object());
  }
}

void RecordPrinter::print_formatted(const boost::json::object& record) const {
  print_text(format_->line(record, harmless_));
}

}  // namespace duet::app
