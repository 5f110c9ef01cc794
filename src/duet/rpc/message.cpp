#include "duet/rpc/message.h"

#include <algorithm>
#include <utility>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"

namespace duet::rpc {
namespace {

constexpr std::string_view null_text = "null";

Message refuse(Error error, std::string_view id = null_text) {
  Message message;
  message.id = id;
  message.refusal = std::move(error);
  return message;
}

Message take_array(std::string_view text, Batches batches) {
  if (batches == Batches::refused) return refuse(batch_not_supported());
  if (batches == Batches::inside_another) return refuse(invalid_request("malformed-envelope", "not an object"));
  std::size_t count = 0;
  for_each_element(text, [&](std::string_view) { return ++count <= max_batch; });
  if (count == 0) return refuse(invalid_request("malformed-envelope", "empty batch"));
  if (count > max_batch) return refuse(invalid_request("batch-too-large"));
  Message message;
  message.kind = Message::Kind::batch;
  message.batch = text;
  return message;
}

bool is_version_two(std::string_view token) {
  if (token == R"("2.0")") return true;
  constexpr std::size_t longest_spelling = 2 + 3 * 6;
  return token.size() <= longest_spelling && token.starts_with('"') && decode_string(token) == "2.0";
}

// What makes an object no proper request, if anything; the id is already known to be usable.
std::string_view envelope_fault(const Envelope& envelope) {
  using Member = Envelope::Member;
  for (const Member member : {Member::jsonrpc, Member::id, Member::method, Member::params}) {
    if (envelope.is_doubled(member)) return "duplicate member";
  }
  if (!envelope.has(Member::jsonrpc)) return "jsonrpc is missing";
  if (!is_version_two(envelope.members[Member::jsonrpc])) return "jsonrpc must be \"2.0\"";
  if (!envelope.has(Member::method)) return "method is missing";
  if (envelope.members[Member::method].front() != '"') return "method must be a string";
  const std::string_view params = envelope.members[Member::params];
  if (!params.empty() && params != null_text && params.front() != '{' && params.front() != '[') {
    return "params must be an object or an array";
  }
  return {};
}

Message response(const Envelope& envelope) {
  Message message;
  message.kind = Message::Kind::response;
  if (envelope.has(Envelope::id)) message.id = envelope.members[Envelope::id];
  message.result = envelope.members[Envelope::result];
  message.error = envelope.members[Envelope::error];
  return message;
}

}  // namespace

Message decode(std::string_view text, Batches batches) {
  const Envelope envelope = scan_envelope(text);
  switch (envelope.shape) {
    case Envelope::Shape::invalid: {
      Message message = refuse(parse_error("invalid-json"));
      message.is_json = false;
      return message;
    }
    case Envelope::Shape::array: return take_array(text, batches);
    case Envelope::Shape::scalar: return refuse(invalid_request("malformed-envelope", "not an object"));
    case Envelope::Shape::object: break;
  }
  const bool answers = envelope.has(Envelope::result) || envelope.has(Envelope::error);
  if (!envelope.has(Envelope::method) && answers) return response(envelope);
  if (envelope.id_of_wrong_type) return refuse(invalid_request("invalid-id-type"));

  const std::string_view id = envelope.members[Envelope::id];
  const std::string_view answer_id = id.empty() || envelope.is_doubled(Envelope::id) ? null_text : id;
  const std::string_view fault = envelope_fault(envelope);
  if (!fault.empty()) return refuse(invalid_request("malformed-envelope", fault), answer_id);
  if (envelope.too_deep) return refuse(invalid_request("too-deep"), answer_id);

  Message message;
  message.kind = id.empty() ? Message::Kind::notification : Message::Kind::request;
  message.id = answer_id;
  const std::string_view token = envelope.members[Envelope::method];
  message.method = token.substr(1, token.size() - 2);
  if (message.method.find('\\') != std::string_view::npos) {
    message.method_text_ = std::make_unique<std::string>(decode_string_inside(message.method));
    message.method = *message.method_text_;
  }
  if (envelope.members[Envelope::params] != null_text) message.params = envelope.members[Envelope::params];
  return message;
}

Pieces::Pieces(std::initializer_list<std::string_view> pieces) {
  for (const std::string_view piece : pieces) {
    pieces_[count_++] = piece;
    size_ += piece.size();
  }
}

void Pieces::append_to(std::string& out) const {
  for (std::size_t i = 0; i < count_; ++i) out += pieces_[i];
}

void Pieces::copy_to(char* at) const {
  for (std::size_t i = 0; i < count_; ++i) at = std::copy(pieces_[i].begin(), pieces_[i].end(), at);
}

Pieces encode_result(std::string_view id, std::string_view result) {
  return {R"({"jsonrpc":"2.0","id":)", id, R"(,"result":)", result, "}"};
}

Pieces encode_error(std::string_view id, std::string_view error) {
  return {R"({"jsonrpc":"2.0","id":)", id, R"(,"error":)", error, "}"};
}

std::string encode(const Error& error) {
  std::string out = R"({"code":)" + std::to_string(error.code()) + R"(,"message":)";
  append_string(out, error.message());
  if (!error.data().empty()) out.append(R"(,"data":)").append(error.data());
  return out + '}';
}

Pieces encode_request(std::string_view id, std::string_view quoted_method, std::string_view params) {
  return {R"({"jsonrpc":"2.0","id":)", id, R"(,"method":)", quoted_method,
          params.empty() ? std::string_view() : R"(,"params":)", params, "}"};
}

Pieces encode_notification(std::string_view quoted_method, std::string_view params) {
  return {R"({"jsonrpc":"2.0","method":)", quoted_method,
          params.empty() ? std::string_view() : R"(,"params":)", params, "}"};
}

}  // namespace duet::rpc
