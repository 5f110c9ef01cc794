#include "duet/rpc/error.h"

#include <utility>

#include "duet/rpc/object_text.h"

namespace duet::rpc {
namespace {

Json reason_data(std::string_view reason, std::string_view detail) {
  ObjectText data;
  data.add("reason", reason);
  if (!detail.empty()) data.add("detail", detail);
  return Json::trusted(data.take());
}

}  // namespace

Error::Error(int code, std::string message, const Json& data)
    : code_(code), message_(std::move(message)), data_(data.text()) {}

Error parse_error(std::string_view reason) { return {code::parse_error, "Parse error", reason_data(reason, {})}; }

Error invalid_request(std::string_view reason, std::string_view detail) {
  return {code::invalid_request, "Invalid Request", reason_data(reason, detail)};
}

Error batch_not_supported() {
  return {code::invalid_request, "Batch requests not supported", reason_data("batch-not-supported", {})};
}

Error method_not_found() { return {code::method_not_found, "Method not found"}; }

Error invalid_params(std::string_view param, std::string_view expected, std::string_view received,
                     const Json& accepted) {
  ObjectText data;
  data.add("param", param).add("expected", expected).add("received", received);
  if (!accepted.empty()) data.add_json("accepted", accepted.text());
  return {code::invalid_params, "Invalid params", Json::trusted(data.take())};
}

Error internal_error() { return {code::internal_error, "Internal error"}; }

Error request_cancelled() { return {code::request_cancelled, "Request cancelled"}; }

Error not_permitted(std::string_view method, std::string_view needs, std::string_view role) {
  ObjectText data;
  data.add("method", method).add("needs", needs).add("role", role);
  return {code::not_permitted, "Not permitted", Json::trusted(data.take())};
}

}  // namespace duet::rpc
