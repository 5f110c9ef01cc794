#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace duet::app::mcp {

/// The clients whose configuration can be printed.
inline constexpr std::array<std::string_view, 6> config_clients = {"claude", "codex", "vscode",
                                                                   "cursor", "zed",   "gemini"};

/// What a client's configuration file needs to start this server, and where it belongs.
struct ClientConfig {
  std::string text;   ///< JSON, of Codex TOML, with a line end
  std::string place;  ///< a sentence for people
};

/// `command` is how the client calls this program; `options` follow `mcp`. VS Code is told its workspace's folder,
/// whichever project they name.
ClientConfig client_config(std::string_view client, const std::string& command, std::vector<std::string> options);

/// `duet-rpc` if `path`, as in PATH, leads to the program that runs; else where that is.
std::string command_for_config(std::string_view path);

}  // namespace duet::app::mcp
