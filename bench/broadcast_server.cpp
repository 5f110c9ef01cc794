// What bench/broadcast_node.js does, on the toolkit: `task.submit` is answered, and every client is told of it.
// broadcast_server PATH        a message a line on a Unix socket
// broadcast_server tcp PORT    the frames of a WebSocket at 127.0.0.1, without a handshake

#include <signal.h>

#include <string>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/peer/server.h"
#include "duet/transport/tcp_acceptor.h"

int main(int argc, char** argv) {
  using namespace duet;
  if (argc != 2 && argc != 3) return 2;
  const bool tcp = argc == 3;
  signal(SIGPIPE, SIG_IGN);
  base::Log log(base::stderr_sink(false));
  transport::Loop loop;
  peer::Server server(loop, log, {}, {}, tcp ? peer::Protocol::websocket() : peer::Protocol::json_lines());
  server.register_method("ping", [](const peer::Request&) { return rpc::Json::view("{}"); });
  server.register_method("task.submit", [&server, seq = 0](const peer::Request&) mutable {
    const std::string number = std::to_string(++seq);
    const std::string task = R"({"taskId":"task-)" + number + R"(","state":"queued")";
    server.broadcast("event.taskQueued",
                     rpc::Json::trusted(task + R"(,"agent":"shell","attempts":0,"seq":)" + number + '}'));
    return rpc::Json::trusted(task + '}');
  });
  if (tcp) {
    const auto address = transport::TcpAddress::parse(std::string("127.0.0.1:") + argv[2]);
    server.listen(transport::tcp_acceptor(loop, transport::listen_tcp(address.value())));
  } else {
    server.start(argv[1]);
  }
  loop.run();
}
