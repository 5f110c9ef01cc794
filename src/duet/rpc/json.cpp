#include "duet/rpc/json.h"

#include <stdexcept>

namespace duet::rpc {

Json Json::parse(std::string text) {
  if (!is_valid_json(text)) throw std::invalid_argument("this is not JSON");
  return trusted(std::move(text));
}

}  // namespace duet::rpc
