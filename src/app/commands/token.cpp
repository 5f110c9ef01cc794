#include <unistd.h>

#include <chrono>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/task_end.h"
#include "app/commands/commands.h"
#include "app/view/display_text.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "app/words/duration.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

// 0: for ever.
double seconds_of_life(const std::string& given) {
  if (given == "never") return 0;
  const auto life = parse_duration(given);
  if (life && life->count() > 0) return std::chrono::duration<double>(*life).count();
  throw Failure("--expires does not take '" + one_line(given) +
                "': it is how long the token is good, as 12h or 30d, up to a " + "year, or never");
}

object token_wanted(const CommandLine& line) {
  object params{{"name", line.arguments.front()}};
  if (const auto role = line.text("role")) params["role"] = *role;
  if (const auto life = line.text("expires")) params["expiresSeconds"] = seconds_of_life(*life);
  return params;
}

std::string time_or(const object& token, std::string_view member, const std::string& otherwise, base::UtcTime now) {
  const std::string text = member_text(token, member);
  return text.empty() ? otherwise : relative_time(text, now);
}

Table token_table(const array& tokens) {
  const base::UtcTime now = base::system_clock().utc();
  Table table({"NAME", "ROLE", "MADE", "USED", "ENDS"});
  for (const boost::json::value& entry : tokens) {
    const object& token = entry.as_object();
    table.add({{member_text(token, "name")},
               {member_text(token, "role")},
               {time_or(token, "createdAt", "", now)},
               {time_or(token, "usedAt", "never", now)},
               {time_or(token, "expiresAt", "never", now)}});
  }
  return table;
}

int revoke_all(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("token.revoke");
  if (line.flag("json")) return print_text(answer + '\n');
  const object result = rpc::parse_value(answer).as_object();
  const std::size_t count = result.at("revoked").as_array().size();
  if (count == 0) return print_text("there were no tokens\n");
  return print_text(std::to_string(count) + (count == 1 ? " token has ended\n" : " tokens have ended\n"));
}

// One that is refused does not keep the others from it.
int revoke_each(const CommandLine& line) {
  DaemonClient daemon(line);
  int code = 0;
  for (const std::string& name : line.arguments) {
    const std::string params = rpc::to_text(object{{"name", name}});
    const peer::Outcome outcome = daemon.ask("token.revoke", params, daemon.patience());
    if (outcome.cause == peer::Outcome::Cause::answered) {
      print_text((line.flag("json") ? outcome.result : one_line(name) + " has ended") + '\n');
      continue;
    }
    const Failure failure = DaemonClient::failure_of("token.revoke", outcome);
    if (outcome.cause != peer::Outcome::Cause::refused) throw failure;
    const bool is_unknown = outcome.error && outcome.error->code() == rpc::code::invalid_params;
    const std::string what = is_unknown ? "there is no token '" + one_line(name) + "'" : failure.what();
    print_aside(std::string(line.program) + ": " + what + '\n');
    code = failure.code();
  }
  return code;
}

}  // namespace

int run_token_new(const CommandLine& line) {
  const std::string params = rpc::to_text(token_wanted(line));
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("token.create", params);
  if (line.flag("json")) return print_text(answer + '\n');
  return print_text(member_text(rpc::parse_value(answer).as_object(), "token") + '\n');
}

int run_token_list(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("token.list");
  if (line.flag("json")) return print_text(answer + '\n');
  const array tokens = rpc::parse_value(answer).as_array();
  if (tokens.empty()) return print_text("there are no tokens\n");
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(token_table(tokens).text(style, terminal_width(STDOUT_FILENO)));
}

int run_token_revoke(const CommandLine& line) {
  const bool all = line.flag("all");
  if (all == !line.arguments.empty()) {
    throw Failure("token revoke wants the names of tokens, or --all: 'duet-rpc token list' shows them");
  }
  return all ? revoke_all(line) : revoke_each(line);
}

}  // namespace duet::app
