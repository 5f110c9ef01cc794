#include "task/text_or_bytes.h"

#include <boost/json/array.hpp>

#include "duet/rpc/utf8.h"

namespace duet::task {

namespace json = boost::json;

json::value text_or_bytes(const std::string& value) {
  if (rpc::is_utf8(value)) return json::value(value);
  json::array bytes;
  for (const char c : value) bytes.emplace_back(static_cast<unsigned char>(c));
  return bytes;
}

std::string from_text_or_bytes(const json::value& saved) {
  if (const json::string* text = saved.if_string()) return std::string(*text);
  std::string bytes;
  for (const json::value& byte : saved.as_array()) bytes += static_cast<char>(byte.to_number<unsigned char>());
  return bytes;
}

}  // namespace duet::task
