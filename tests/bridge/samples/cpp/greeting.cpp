#include "greeting.h"

int greet(const char* name) {
  int count = 0;
  while (name[count] != '\0') ++count;
  return count;
}
