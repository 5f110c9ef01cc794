// A stranger's program: what is thrown on one side of the library's border is caught on the other, also when the
// program hides its own symbols. It reads as its user would write it; scripts/check_library builds and runs it.

#include <chrono>
#include <string>
#include <system_error>
#include <thread>

#include <duet/base/log_sink.h>
#include <duet/peer/client.h>
#include <duet/peer/server.h>
#include <duet/transport/loop.h>

#include "expect.h"

using namespace duet;

namespace {

// From us into the library (rpc::Error), from there to us (CallFailed).
void errors_of_handlers(const std::string& path) {
  transport::Loop loop;
  base::Log log(base::stderr_sink(false), base::Level::error);
  peer::Server server(loop, log);
  server.register_method("refuse", [](const peer::Request&) -> rpc::Json { throw rpc::Error(7, "not today"); });
  server.start(path);
  std::thread serving([&] { loop.run(); });
  int code = 0;
  try {
    peer::Client client;
    client.connect(path);
    client.call("refuse");
  } catch (const peer::CallFailed& failed) {
    code = failed.error() ? failed.error()->code() : -1;
  }
  loop.post([&] { loop.stop(); });
  serving.join();
  expect(code == 7, "a handler's error reaches the client's caller");
}

void errors_of_connecting() {
  std::string text;
  try {
    peer::Client client;
    client.connect("/no/such/socket");
  } catch (const std::system_error& error) {
    text = error.what();
  }
  expect(text.find("/no/such/socket") != std::string::npos, "a failed connect names its path");
}

void work_elsewhere() {
  transport::Loop loop;
  bool caught = false;
  loop.run_elsewhere([]() -> int { throw rpc::Error(8, "elsewhere"); },
                     [&](base::Result<int> result) {
                       try {
                         result.get();
                       } catch (const rpc::Error& error) {
                         caught = error.code() == 8;
                       }
                       loop.stop();
                     });
  loop.run();
  expect(caught, "what work elsewhere throws is caught here");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  errors_of_handlers(argv[1]);
  errors_of_connecting();
  work_elsewhere();
}
