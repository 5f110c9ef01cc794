// Asks the example server: client SOCKET

#include <iostream>

#include <boost/json/serialize.hpp>
#include <duet/peer/client.h>

using namespace duet;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: client SOCKET\n";
    return 1;
  }
  try {
    peer::Client client;
    bool heard = false;
    client.on("shouted", [&](const rpc::Json& params) {
      std::cout << "heard " << params.text() << '\n';
      heard = true;
    });
    client.connect(argv[1]);
    std::cout << "2 + 3 = " << boost::json::serialize(client.call("add", {2, 3})) << '\n';
    client.call("shout", {{"text", "hello"}});
    client.wait_for([&] { return heard; }, std::chrono::seconds(5));
    client.call("add", {{"a", "two"}, {"b", 3}});  // refused: `a` is no number
  } catch (const peer::CallFailed& failure) {
    std::cout << "refused: " << failure.what() << ' ' << (failure.error() ? failure.error()->data() : "") << '\n';
    return failure.cause() == peer::Outcome::Cause::refused ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "client: " << failure.what() << '\n';
    return 1;
  }
}
