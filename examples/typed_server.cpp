// A server whose methods are C++ types: typed_server SOCKET
// Try it: printf '{"jsonrpc":"2.0","id":1,"method":"greet","params":{"name":"you"}}\n' | nc -N -U SOCKET

#include <iostream>
#include <optional>
#include <string>

#include <boost/describe/class.hpp>
#include <duet/duet.h>

struct Greet {
  std::string name;
  std::optional<std::string> language;
  int times = 1;
};
BOOST_DESCRIBE_STRUCT(Greet, (), (name, language, times))

struct Greeting {
  std::string text;
};
BOOST_DESCRIBE_STRUCT(Greeting, (), (text))

int main(int argc, char** argv) {
  if (argc != 2) return (std::cerr << "usage: typed_server SOCKET\n", 1);
  duet::Methods methods;
  methods.add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  methods
      .add("greet", "Greets somebody",
           [](const Greet& greet) {
             if (greet.times > 100) throw duet::Error(-32000, "That is too much", greet.times);
             Greeting greeting;
             for (int i = 0; i < greet.times; ++i) {
               greeting.text += (greet.language == "fr" ? "Bonjour " : "Hello ") + greet.name + ". ";
             }
             return greeting;
           })
      .describe(&Greet::times, "How often");
  duet::serve(argv[1], methods);
}
