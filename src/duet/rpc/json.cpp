#include "duet/rpc/json.h"

#include <stdexcept>

namespace duet::rpc {

Json Json::parse(std::string text) {
  if (!is_valid_json(text)) throw std::invalid_argument("this is not JSON");
  constexpr std::string_view blanks = " \t\r\n";
  text.erase(text.find_last_not_of(blanks) + 1);
  text.erase(0, text.find_first_not_of(blanks));
  return Json(std::move(text), true);
}

}  // namespace duet::rpc
