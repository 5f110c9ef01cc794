#include "bridge/standing.h"

#include "bridge/compile_commands.h"

namespace duet::bridge {

void add_standing(boost::json::object& out, const LanguageServer& server, const std::string& path) {
  out["server"] = server.name();
  const bool works = server.progress().is_under_way();
  out["complete"] = !works;
  if (works) out["indexing"] = server.progress().text();
  if (server.lacks_compile_commands() && !finds_compile_commands(path)) out["note"] = no_compile_commands;
}

void add_freshness(boost::json::object& out, bool fresh, std::string_view reason) {
  out["fresh"] = fresh;
  if (!fresh) out["reason"] = reason;
}

}  // namespace duet::bridge
