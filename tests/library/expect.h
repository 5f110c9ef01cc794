#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

/// Ends the program if it does not hold.
inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "not so: " << what << '\n';
  std::exit(1);
}
