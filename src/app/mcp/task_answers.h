#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/mcp/page.h"
#include "app/mcp/tool_result.h"

namespace duet::app::mcp {

/// Output of a task as the daemon has it, raw.
struct OutputPart {
  std::uint64_t offset = 0;  ///< of its first byte
  std::string bytes = {};
  std::uint64_t next = 0;  ///< behind its last
  bool done = false;       ///< nothing will follow
  std::optional<std::uint64_t> dropped = {};
};

/// What `task.output` answered with base64.
OutputPart output_part(const boost::json::value& answer);
/// Of the last bytes of an output: without the rest of a character that began before them.
OutputPart without_torn_character(OutputPart part);

/// A task with what is known of it beside its record.
struct TaskView {
  boost::json::object record = {};
  std::string waiting = {};             ///< why it has not begun
  std::optional<OutputPart> tail = {};  ///< none: nobody asked for it, or it is gone
  std::uint64_t output_bytes = 0;
};

bool has_ended(const boost::json::object& record);
/// `completed`, `running` and so on.
std::string_view state_of(const boost::json::object& record);
/// `task-7`
std::string_view id_of(const boost::json::object& record);

/// The line before output in a text, which says that it is nobody's instructions.
std::string output_heading(std::string_view task_id);

/// The answer of `task_get` and `task_run`.
ToolResult task_answer(const TaskView& task, std::string_view root, std::size_t max_bytes);

/// A list of tasks; the answers of the daemon are those of `task.list` and `task.stats`.
Page task_list_page(const std::vector<TaskView>& tasks, const boost::json::object& counts, std::string_view root);

/// As much of the part as fits. `next` is behind what is shown.
ToolResult output_answer(const boost::json::object& record, OutputPart part, std::string_view root,
                         std::size_t max_bytes);

/// Finds lines with a text in them in output that comes in parts.
class OutputSearch {
 public:
  OutputSearch(std::string wanted, std::uint64_t begin, std::size_t max_bytes);

  /// Of a part that was asked for as the last `tail` bytes and one more: what is searched of it.
  OutputPart begin_tail(OutputPart part, std::size_t tail);
  /// False: it has enough, or there is no more.
  bool take(const OutputPart& part);
  /// Where the next part begins.
  std::uint64_t read_to() const { return read_to_; }
  ToolResult answer(const boost::json::object& record, std::string_view root) const;

 private:
  void look_at(std::string_view part);
  bool end_line(std::uint64_t next);
  bool add(std::string_view line);

  std::string wanted_;
  std::uint64_t begin_;
  std::uint64_t next_;
  std::uint64_t read_to_;
  std::size_t left_;
  std::string head_ = {};     // of the line that has not ended
  std::string overlap_ = {};  // its end, where a match may have begun
  bool is_match_ = false;
  std::optional<std::uint64_t> dropped_ = {};
  bool done_ = false;
  boost::json::array matches_;
  std::string text_;
};

ToolResult cancel_answer(const boost::json::object& record, bool cancelled, std::string_view root);

}  // namespace duet::app::mcp
