#include "duet/rpc/schema.h"

namespace duet::rpc {

boost::json::object SchemaMaker::or_null(boost::json::object schema) {
  if (boost::json::value* const type = schema.if_contains("type"); type != nullptr && type->is_string()) {
    *type = boost::json::array{*type, "null"};
  }
  if (boost::json::value* const words = schema.if_contains("enum")) words->as_array().emplace_back(nullptr);
  return schema;
}

}  // namespace duet::rpc
