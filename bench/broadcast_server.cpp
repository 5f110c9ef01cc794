// What bench/broadcast_node.js does, on the toolkit: `task.submit` is answered, and every client is told of it.
// broadcast_server PATH

#include <signal.h>

#include <string>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/peer/server.h"

int main(int argc, char** argv) {
  using namespace duet;
  if (argc != 2) return 2;
  signal(SIGPIPE, SIG_IGN);
  base::Log log(base::stderr_sink(false));
  transport::Loop loop;
  peer::Server server(loop, log);
  server.register_method("ping", [](const peer::Request&) { return rpc::Json::view("{}"); });
  server.register_method("task.submit", [&server, seq = 0](const peer::Request&) mutable {
    const std::string number = std::to_string(++seq);
    const std::string task = R"({"taskId":"task-)" + number + R"(","state":"queued")";
    server.broadcast("event.taskQueued",
                     rpc::Json::trusted(task + R"(,"agent":"shell","attempts":0,"seq":)" + number + '}'));
    return rpc::Json::trusted(task + '}');
  });
  server.start(argv[1]);
  loop.run();
}
