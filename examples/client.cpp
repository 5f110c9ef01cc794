// Asks the typed server: client SOCKET

#include <chrono>
#include <iostream>

#include <duet/duet.h>

int main(int argc, char** argv) {
  if (argc != 2) return (std::cerr << "usage: client SOCKET\n", 1);
  try {
    duet::Client client;
    client.connect(argv[1]);

    // C++ values both ways, by position. Without a type the result is a tree, and so are params with names.
    std::cout << "2 + 3 = " << client.call<double>("add", 2, 3) << '\n';
    std::cout << client.call("greet", {{"name", "you"}, {"language", "fr"}}).at("text").as_string().c_str() << '\n';

    // Many at once: all are sent before the first answer comes.
    double sum = 0;
    int answers = 0;
    for (int number : {1, 3, 5}) {
      client.call_later("add", {number, number + 1}, [&](const duet::Outcome& outcome) {
        sum += duet::Json::parse(outcome.result).as<double>();
        ++answers;
      });
    }
    client.wait_for([&] { return answers == 3; }, std::chrono::seconds(5));
    std::cout << "1 + 2 + … + 6 = " << sum << '\n';

    client.call<double>("add", "two", 3);  // refused: `a` is not a number
  } catch (const duet::CallFailed& failure) {
    std::cout << failure.what() << '\n';
    return failure.cause() == duet::Outcome::Cause::refused ? 0 : 1;
  } catch (const std::exception& failure) {
    std::cerr << "client: " << failure.what() << '\n';
    return 1;
  }
}
