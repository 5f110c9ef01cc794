#include <unistd.h>

#include <optional>
#include <string>

#include <boost/json/object.hpp>

#include "app/client/browser.h"
#include "app/client/daemon_client.h"
#include "app/client/far_place.h"
#include "app/commands/commands.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {

namespace {

using boost::json::object;

// The code in the URL is seen by whoever lists processes while the browser starts. It is good for one use, the door
// refuses other users whatever they show, and a second use ends what the first one made.
object login_here(const CommandLine& line) {
  DaemonClient daemon(line);
  daemon.call("http.open");
  const object login =
      daemon.call("login.create", object{{"role", line.flag("read-only") ? "observe" : "own"}}).as_object();
  return {{"url", login.at("url")}, {"expiresAt", login.at("expiresAt")}};
}

// On another machine the browser's certificate says who comes, and as what: there is nothing to log in with.
object page_of(const FarPlace& place) { return {{"url", "https://" + place.url.place() + '/'}}; }

}  // namespace

int run_dashboard(const CommandLine& line) {
  const std::optional<FarPlace> place = far_place(line);
  const object page = place ? page_of(*place) : login_here(line);
  const std::string url = member_text(page, "url");
  print_text((line.flag("json") ? rpc::to_text(page) : url) + '\n');
  if (!line.flag("no-open") && isatty(STDOUT_FILENO) == 1) open_browser(url);
  return 0;
}

}  // namespace duet::app
