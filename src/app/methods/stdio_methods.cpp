#include "app/methods/stdio_methods.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>

#include "app/methods/describing_methods.h"
#include "app/words/program_name.h"
#include "duet/rpc/json.h"
#include "duet/rpc/params.h"
#include "duet/version.h"

template <>
struct duet::rpc::EnumWords<duet::base::Level> {
  static constexpr std::array<EnumWord<base::Level>, 4> list{{{base::Level::debug, base::level_names[0]},
                                                              {base::Level::info, base::level_names[1]},
                                                              {base::Level::warn, base::level_names[2]},
                                                              {base::Level::error, base::level_names[3]}}};
};

namespace duet::app {
namespace {

struct ServerInfo {
  std::string name;
  std::string version;
};
BOOST_DESCRIBE_STRUCT(ServerInfo, (), (name, version))

struct Initialized {
  ServerInfo serverInfo;
  std::string protocolVersion;
};
BOOST_DESCRIBE_STRUCT(Initialized, (), (serverInfo, protocolVersion))

struct LevelSet {
  base::Level level;
  bool success;
};
BOOST_DESCRIBE_STRUCT(LevelSet, (), (level, success))

struct Farewell {
  std::string message;
};
BOOST_DESCRIBE_STRUCT(Farewell, (), (message))

struct LspClient {
  std::optional<rpc::Json> processId;
};
BOOST_DESCRIBE_STRUCT(LspClient, (), (processId))

// LSP clients tell who they are; whatever else stands in the params of `initialize` concerns nobody here.
std::optional<std::int64_t> process_id(std::string_view params) {
  static const std::vector<rpc::Param> list = rpc::describe_params<LspClient>();
  if (!params.starts_with('{')) return std::nullopt;
  LspClient client;
  rpc::read_params(list, params, client);
  std::int64_t pid = 0;
  if (!client.processId || !rpc::read_json(client.processId->text(), pid)) return std::nullopt;
  return pid;
}

}  // namespace

void add_stdio_methods(peer::Methods& methods, base::Log& log, const StdioActions& actions) {
  methods.add("initialize",
              "Tells the server's name and version; optional. The daemon ends with the process named by a processId",
              [watch = actions.watch_process](const rpc::Json& params) {
                if (const std::optional<std::int64_t> pid = process_id(params.text())) watch(*pid);
                return Initialized{{std::string(program_name), kVersion}, "2.0"};
              });
  add_describing_methods(methods, false);
  methods
      .add("setLogLevel", "Changes how much the daemon logs, until it ends", {"level"},
           [&log](base::Level level) {
             log.set_level(level);
             return LevelSet{level, true};
           })
      .describe("level", "The least severe level that is logged, in any case");
  methods.add("shutdown", "Ends the daemon, after the answer to this; also as a notification",
              [shut_down = actions.shut_down] {
                shut_down();
                return Farewell{"Shutting down gracefully"};
              });
}

}  // namespace duet::app
