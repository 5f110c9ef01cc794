#include "greeting.h"

int main() {
  const char* text = "ää 你好 😀";
  int length = greet(text);
  return length;
}
