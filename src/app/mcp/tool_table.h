#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/doors/roles.h"

namespace duet::app::mcp {

enum class Group : std::uint8_t { code, task, project };

inline constexpr std::int64_t usual_max_bytes = 16'000;
inline constexpr std::int64_t least_max_bytes = 1'000;
inline constexpr std::int64_t most_max_bytes = 48'000;

/// One tool as models and people see it. What it does is in the file of its group (code_tools.cpp and so on).
struct Tool {
  enum class Name : std::uint8_t {
    code_symbols,
    code_definition,
    code_references,
    code_diagnostics,
    task_run,
    task_get,
    task_list,
    task_output,
    task_cancel,
    project_status
  };
  Name id;
  std::string_view name;
  std::string_view title;
  Group group;
  bool changes = false;                    ///< it does something; else it only reads
  bool repeatable = true;                  ///< a second call with the same arguments does nothing more
  bool open_world = false;                 ///< what it starts may reach out of this machine
  std::string_view needs = role::observe;  ///< the role of who came by a token
  std::string_view description;
  std::string_view inputs;    ///< the `properties` of its input schema, without braces and without max_bytes
  std::string_view required;  ///< `"prompt"`, or empty
  std::string_view output;    ///< the `properties` of its output schema, without braces and without root
  std::string_view required_output;

  std::string input_schema() const;
  std::string output_schema() const;
  /// The entry of `tools/list`; `with_execution` for the one revision where a tool tells whether it can be a task.
  std::string definition(bool with_execution) const;
};

/// All of them, in the order they are listed: what is offered, what arguments are checked against and what
/// docs/mcp.md has come from here.
std::span<const Tool> all_tools();
const Tool* find_tool(std::string_view name);

/// The tools that one door offers. Made once; its texts are the same bytes for every request.
class ToolTable {
 public:
  struct Choice {
    std::vector<Group> groups = {Group::code, Group::task, Group::project};
    bool read_only = false;
    std::string_view role = role::own;  ///< what it may not do is not offered
  };
  explicit ToolTable(const Choice& choice);

  const Tool* find(std::string_view name) const;
  bool offers(Tool::Name name) const;
  std::vector<std::string_view> names() const;
  /// The `tools` array as JSON text.
  const std::string& text(bool with_execution) const { return with_execution ? legacy_text_ : text_; }
  /// Of `tool`, parsed: what its arguments are checked against.
  const boost::json::object& input_schema(const Tool& tool) const;

 private:
  std::vector<const Tool*> tools_;
  std::string text_;
  std::string legacy_text_;
  mutable std::vector<boost::json::object> schemas_;  // by Tool::id, made when they are needed
};

/// What the client's model is told about the server as a whole.
std::string_view instructions();

/// docs/mcp.md has this table.
std::string tools_page();

}  // namespace duet::app::mcp
