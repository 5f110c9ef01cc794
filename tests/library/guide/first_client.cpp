#include <iostream>

#include <duet/duet.h>

int main() {
  duet::Client client;
  client.connect("sum.sock");
  std::cout << client.call<double>("add", 2, 3) << '\n';
}
