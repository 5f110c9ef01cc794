// A server in a program that runs on Boost.Asio: asio SOCKET

#include <csignal>
#include <iostream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <duet/base/log_sink.h>
#include <duet/peer/server.h>

using namespace duet;
using boost::asio::posix::stream_descriptor;

// The loop has one descriptor for all that it waits for. Whenever it is readable there is a turn to make.
void drive(transport::Loop& loop, stream_descriptor& descriptor) {
  descriptor.async_wait(stream_descriptor::wait_read, [&](boost::system::error_code error) {
    if (error) return;
    loop.turn(std::chrono::seconds(0));
    drive(loop, descriptor);
  });
}

int main(int argc, char** argv) {
  if (argc != 2) return (std::cerr << "usage: asio SOCKET\n", 1);
  base::Log log(base::stderr_sink(false), base::Level::info);
  transport::Loop loop;
  peer::Server server(loop, log);
  server.methods().add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  server.methods().add("shout", "Tells everybody", [&](const rpc::Json& params) {
    server.broadcast("shouted", params);
    return server.client_count();
  });
  server.start(argv[1]);

  boost::asio::io_context context;
  stream_descriptor descriptor(context, loop.descriptor());
  drive(loop, descriptor);
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code, int) { context.stop(); });
  context.run();
  descriptor.release();  // it is the loop's
}
