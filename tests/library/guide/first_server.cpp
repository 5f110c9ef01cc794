#include <duet/duet.h>

int main() {
  duet::Methods methods;
  methods.add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  duet::serve("sum.sock", methods);
}
