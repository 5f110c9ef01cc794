// A server in a program that runs on Boost.Asio: asio SOCKET

#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <duet/duet.h>

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

// One descriptor stands for all that the loop waits for. Whenever it is readable, there is a turn to make.
void drive(duet::Loop& loop, stream_descriptor& descriptor) {
  descriptor.async_wait(stream_descriptor::wait_read, [&](boost::system::error_code error) {
    if (error) return;
    loop.turn(std::chrono::seconds(0));
    drive(loop, descriptor);
  });
}

int main(int argc, char** argv) {
  if (argc != 2) return (std::cerr << "usage: asio SOCKET\n", 1);
  asio::io_context context;
  duet::Log log(duet::base::stderr_sink(false));
  duet::Loop loop;
  duet::Server server(loop, log);
  // Both loops run on one thread, so what Asio calls may answer.
  server.methods().add("alarm", "Answers when Asio says so", {"milliseconds"},
                       [&](int wait, duet::Reply<std::string> reply) {
                         auto timer = std::make_shared<asio::steady_timer>(context, std::chrono::milliseconds(wait));
                         timer->async_wait([timer, reply = std::move(reply)](auto) mutable { reply.ok("time is up"); });
                       });
  server.start(argv[1]);

  stream_descriptor descriptor(context, loop.descriptor());
  drive(loop, descriptor);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](boost::system::error_code, int) { context.stop(); });
  context.run();
  descriptor.release();  // it is the loop's
}
