#include <unistd.h>

#include <string>

#include <boost/json/object.hpp>

#include "app/client/browser.h"
#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {

// The code in the URL is seen by whoever lists processes while the browser starts. It is good for one use, the door
// refuses other users whatever they show, and a second use ends what the first one made.
int run_dashboard(const CommandLine& line) {
  using boost::json::object;
  DaemonClient daemon(line);
  daemon.call("http.open");
  const object login =
      daemon.call("login.create", object{{"role", line.flag("read-only") ? "observe" : "own"}}).as_object();
  const std::string url = member_text(login, "url");
  if (line.flag("json")) {
    print_text(rpc::to_text(object{{"url", url}, {"expiresAt", login.at("expiresAt")}}) + '\n');
  } else {
    print_text(url + '\n');
  }
  if (!line.flag("no-open") && isatty(STDOUT_FILENO) == 1) open_browser(url);
  return 0;
}

}  // namespace duet::app
