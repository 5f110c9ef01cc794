#include "app/mcp/print_config.h"

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "app/settings/settings_tree.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

boost::json::value parsed(std::string_view client, std::vector<std::string> options = {}) {
  const std::string text = client_config(client, "duet-rpc", std::move(options)).text;
  EXPECT_TRUE(rpc::is_valid_json(text)) << text;
  return rpc::parse_value(text);
}

TEST(PrintConfig, IsWhatEachClientReads) {
  for (const char* client : {"claude", "cursor", "gemini"}) {
    EXPECT_EQ(parsed(client).at("mcpServers").at("duet").at("command"), "duet-rpc") << client;
  }
  EXPECT_EQ(parsed("zed").at("context_servers").at("duet").at("args"), (boost::json::array{"mcp"}));
  EXPECT_EQ(parsed("vscode").at("servers").at("duet").at("type"), "stdio");
}

TEST(PrintConfig, VsCodeIsToldItsWorkspace) {
  EXPECT_EQ(parsed("vscode").at("servers").at("duet").at("args"),
            (boost::json::array{"mcp", "--project", "${workspaceFolder}"}));
  EXPECT_EQ(parsed("vscode", {"--read-only", "--project", "/srv"}).at("servers").at("duet").at("args"),
            (boost::json::array{"mcp", "--read-only", "--project", "${workspaceFolder}"}));
}

TEST(PrintConfig, CodexReadsToml) {
  const std::string text = client_config("codex", "/a \"b\"/duet-rpc", {"--project", "/srv"}).text;
  EXPECT_EQ(text,
            "[mcp_servers.duet]\ncommand = \"/a \\\"b\\\"/duet-rpc\"\nargs = [\"mcp\", \"--project\", \"/srv\"]\n");
  EXPECT_TRUE(std::holds_alternative<Setting>(parse_toml(text)));
}

TEST(PrintConfig, SaysWhereItBelongs) {
  for (const std::string_view client : config_clients) EXPECT_FALSE(client_config(client, "x", {}).place.empty());
}

TEST(PrintConfig, AProgramThatPathDoesNotLeadToIsNamedInFull) {
  EXPECT_TRUE(command_for_config("/nowhere").starts_with('/'));
}

}  // namespace
}  // namespace duet::app::mcp
