#include "app/mcp/print_config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/words/program_name.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"
#include "process/launch.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;

array argument_words(const std::vector<std::string>& options) {
  array words{"mcp"};
  for (const std::string& option : options) words.emplace_back(option);
  return words;
}

// TOML's basic strings have the escapes of JSON, and one more.
std::string toml_text(std::string_view text) {
  constexpr char del = 0x7F;
  std::string quoted;
  for (const char c : rpc::quoted(text)) c == del ? quoted += "\\u007F" : quoted += c;
  return quoted;
}

std::string toml_list(const array& words) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "" : ", ") + toml_text(word.get_string());
  return '[' + list + ']';
}

ClientConfig json_config(const object& config, std::string place) {
  return {rpc::to_text(config) + '\n', std::move(place)};
}

// VS Code starts servers elsewhere, and says by this which folder is meant, whichever was given.
void name_workspace(std::vector<std::string>& options) {
  constexpr const char* workspace = "${workspaceFolder}";
  const auto given = std::ranges::find(options, "--project");
  if (given != options.end()) {
    given[1] = workspace;
  } else {
    options.insert(options.begin(), {"--project", workspace});
  }
}

}  // namespace

ClientConfig client_config(std::string_view client, const std::string& command, std::vector<std::string> options) {
  if (client == "vscode") name_workspace(options);
  const array args = argument_words(options);
  const object plain{{"command", command}, {"args", args}};
  const object typed{{"type", "stdio"}, {"command", command}, {"args", args}};
  if (client == "codex") {
    return {"[mcp_servers.duet]\ncommand = " + toml_text(command) + "\nargs = " + toml_list(args) + '\n',
            "This belongs in ~/.codex/config.toml."};
  }
  if (client == "vscode") {
    return json_config({{"servers", {{"duet", typed}}}},
                       "This belongs in .vscode/mcp.json of the workspace, whose folder it names.");
  }
  if (client == "zed") {
    return json_config({{"context_servers", {{"duet", plain}}}},
                       "This belongs in Zed's settings.json ('zed: open settings').");
  }
  if (client == "cursor") return json_config({{"mcpServers", {{"duet", plain}}}}, "This belongs in .cursor/mcp.json.");
  if (client == "gemini") {
    return json_config({{"mcpServers", {{"duet", plain}}}},
                       "This belongs in .gemini/settings.json, of the project or of ~.");
  }
  return json_config({{"mcpServers", {{"duet", typed}}}}, "This belongs in .mcp.json in the project's root.");
}

std::string command_for_config(std::string_view path) {
  constexpr const char* own = "/proc/self/exe";
  const std::string found = process::find_program(std::string(program_name), path);
  struct stat there {};
  struct stat here {};
  const bool is_this = !found.empty() && stat(found.c_str(), &there) == 0 && stat(own, &here) == 0 &&
                       there.st_dev == here.st_dev && there.st_ino == here.st_ino;
  if (is_this) return std::string(program_name);
  std::error_code none;
  return std::filesystem::read_symlink(own, none).string();
}

}  // namespace duet::app::mcp
