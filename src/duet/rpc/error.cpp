#include "duet/rpc/error.h"

#include <utility>

#include "duet/rpc/json_text.h"

namespace duet::rpc {
namespace {

std::string reason_data(std::string_view reason, std::string_view detail) {
  std::string data = R"({"reason":)" + quoted(reason);
  if (!detail.empty()) data += R"(,"detail":)" + quoted(detail);
  return data + '}';
}

}  // namespace

Error::Error(int code, std::string message, std::string data)
    : code_(code), message_(std::move(message)), data_(std::move(data)) {}

Error parse_error(std::string_view reason) { return {code::parse_error, "Parse error", reason_data(reason, {})}; }

Error invalid_request(std::string_view reason, std::string_view detail) {
  return {code::invalid_request, "Invalid Request", reason_data(reason, detail)};
}

Error batch_not_supported() {
  return {code::invalid_request, "Batch requests not supported", reason_data("batch-not-supported", {})};
}

Error method_not_found() { return {code::method_not_found, "Method not found"}; }

Error invalid_params(std::string_view param, std::string_view expected, std::string_view received,
                     std::string_view accepted_json) {
  std::string data =
      R"({"param":)" + quoted(param) + R"(,"expected":)" + quoted(expected) + R"(,"received":)" + quoted(received);
  if (!accepted_json.empty()) data.append(R"(,"accepted":)").append(accepted_json);
  return {code::invalid_params, "Invalid params", data + '}'};
}

Error internal_error() { return {code::internal_error, "Internal error"}; }

Error request_cancelled() { return {code::request_cancelled, "Request cancelled"}; }

}  // namespace duet::rpc
