// Two peers that ask each other over one connection: both_ways shop SOCKET, both_ways customer SOCKET
// With --lsp behind that, they speak LSP frames instead of lines of JSON.

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include <duet/duet.h>

using namespace duet;
using namespace std::chrono_literals;

// Asks back whoever orders, and answers when that is answered. Meanwhile the shop serves others.
void take_order(const std::string& item, int count, const Request& request, Reply<std::string> reply) {
  const Json offer{{"item", item}, {"price", 3 * count}};
  request.conversation.call("agree", offer, 30s, [reply = shared(std::move(reply))](const Outcome& outcome) {
    if (outcome.result.empty()) return reply->fail(Error(-32000, "The customer does not answer"));
    reply->ok(outcome.result == "true" ? "sold" : "too dear");
  });
}

void sell(Loop& loop, Log& log, const std::string& path, bool lsp) {
  Server shop(loop, log, {.on_empty = [&] { loop.stop(); }}, {}, lsp ? Protocol::lsp_server() : Protocol::json_lines());
  shop.methods().add("order", "Sells, if the price suits", {"item", "count"}, take_order);
  shop.start(path);
  loop.run();
}

void buy(Loop& loop, Log& log, const std::string& path, bool lsp) {
  Methods methods;
  methods.add("agree", "Agrees to a price", {"price"}, [](int price) { return price <= 10; });
  Connection shop(loop, std::make_unique<transport::FdChannel>(loop, transport::connect_unix(path)),
                  lsp ? Protocol::lsp_client() : Protocol::json_lines_client(), methods, log);
  shop.open();
  shop.call("order", {{"item", "tea"}, {"count", 3}}, 30s, [&](const Outcome& outcome) {
    std::cout << (outcome.result.empty() ? name_of(outcome.cause) : outcome.result) << '\n';
    loop.stop();
  });
  loop.run();
}

int main(int argc, char** argv) {
  if (argc < 3) return (std::cerr << "usage: both_ways shop|customer SOCKET [--lsp]\n", 1);
  Log log(base::stderr_sink(false));
  Loop loop;
  (argv[1] == std::string("shop") ? sell : buy)(loop, log, argv[2], argc > 3);
}
