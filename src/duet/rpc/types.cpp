#include "duet/rpc/types.h"

namespace duet::rpc {
namespace {

struct Names {
  std::string_view one;
  std::string_view many;
};

// In the order of Type.
constexpr std::array<Names, 8> names{{{"string", "strings"},
                                      {"integer", "integers"},
                                      {"number", "numbers"},
                                      {"boolean", "booleans"},
                                      {"object", "objects"},
                                      {"array", "arrays"},
                                      {"null", "nulls"},
                                      {"any", "values"}}};

}  // namespace

std::string_view name_of(Type type) { return names.at(static_cast<std::size_t>(type)).one; }

std::string_view plural_of(Type type) { return names.at(static_cast<std::size_t>(type)).many; }

}  // namespace duet::rpc
