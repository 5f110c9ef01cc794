#include "duet/rpc/message.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"

namespace duet::rpc {
namespace {

bool is_null(std::string_view value) { return !value.empty() && value.front() == 'n'; }

std::optional<Error> array_refusal(std::string_view text, Batches batches) {
  if (batches == Batches::refused) return batch_not_supported();
  if (batches == Batches::inside_another) return invalid_request("malformed-envelope", "not an object");
  std::size_t count = 0;
  for_each_element(text, [&](std::string_view) { return ++count <= max_batch; });
  if (count == 0) return invalid_request("malformed-envelope", "empty batch");
  if (count > max_batch) return invalid_request("batch-too-large");
  return std::nullopt;
}

void read_no_object(Message& message, const Envelope& envelope, std::string_view text, Batches batches) {
  if (envelope.shape == Envelope::Shape::invalid) {
    message.is_json = false;
    message.refusal = parse_error("invalid-json");
  } else if (envelope.shape == Envelope::Shape::scalar) {
    message.refusal = invalid_request("malformed-envelope", "not an object");
  } else {
    message.refusal = array_refusal(text, batches);
    if (message.refusal) return;
    message.kind = Message::Kind::batch;
    message.batch = text;
  }
}

void take_response(Message& message, const Envelope& envelope) {
  message.kind = Message::Kind::response;
  if (envelope.has(Envelope::id) && !envelope.id_of_wrong_type) {
    message.id = envelope.text(Envelope::id);
    message.id_is_known = true;
  }
  message.result = envelope.text(Envelope::result);
  message.error = envelope.text(Envelope::error);
}

bool is_version_two(std::string_view token) {
  if (token.size() == 5 && std::memcmp(token.data(), R"("2.0")", 5) == 0) return true;
  constexpr std::size_t longest_spelling = 2 + 3 * 6;
  return token.size() <= longest_spelling && token.starts_with('"') && decode_string(token) == "2.0";
}

// What makes an object no proper request, if anything.
const char* envelope_fault(const Envelope& envelope) {
  constexpr unsigned must_be_single =
      1U << Envelope::jsonrpc | 1U << Envelope::id | 1U << Envelope::method | 1U << Envelope::params;
  if ((envelope.doubled & must_be_single) != 0) return "duplicate member";
  if (!envelope.has(Envelope::jsonrpc)) return "jsonrpc is missing";
  if (!is_version_two(envelope.text(Envelope::jsonrpc))) return "jsonrpc must be \"2.0\"";
  if (!envelope.has(Envelope::method)) return "method is missing";
  if (envelope.text(Envelope::method).front() != '"') return "method must be a string";
  const std::string_view params = envelope.text(Envelope::params);
  if (!params.empty() && !is_null(params) && params.front() != '{' && params.front() != '[') {
    return "params must be an object or an array";
  }
  return nullptr;
}

std::optional<Error> refusal_of(const Envelope& envelope) {
  if (envelope.id_of_wrong_type) return invalid_request("invalid-id-type");
  if (const char* fault = envelope_fault(envelope)) return invalid_request("malformed-envelope", fault);
  if (envelope.too_deep) return invalid_request("too-deep");
  return std::nullopt;
}

}  // namespace

Message decode(std::string_view text, Batches batches) {
  Message message;
  const Envelope envelope = scan_envelope(text);
  if (envelope.shape != Envelope::Shape::object) {
    read_no_object(message, envelope, text, batches);
    return message;
  }
  const std::string_view token = envelope.text(Envelope::method);
  if (token.empty() && (envelope.has(Envelope::result) || envelope.has(Envelope::error))) {
    take_response(message, envelope);
    return message;
  }
  const std::string_view id = envelope.text(Envelope::id);
  message.id_is_known = !id.empty() && !envelope.is_doubled(Envelope::id) && !envelope.id_of_wrong_type;
  if (message.id_is_known) message.id = id;
  if (token.starts_with('"') && !envelope.is_doubled(Envelope::method)) {
    message.method = std::string_view(token.data() + 1, token.size() - 2);
  }
  if (!envelope.method_is_plain && message.method.find('\\') != std::string_view::npos) {
    message.method_text_ = std::make_unique<std::string>(decode_string(token));
    message.method = *message.method_text_;
  }
  if (std::optional<Error> refusal = refusal_of(envelope)) {
    message.refusal = std::move(refusal);
    return message;
  }
  message.kind = id.empty() ? Message::Kind::notification : Message::Kind::request;
  const std::string_view params = envelope.text(Envelope::params);
  if (!is_null(params)) message.params = params;
  return message;
}

void refuse_loose_id(Message& message) {
  const bool is_text = message.id.starts_with('"');
  const std::string_view digits = message.id.substr(message.id.starts_with('-') ? 1 : 0);
  const bool is_integer = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!message.id_is_known || is_text || is_integer) return;
  message.id = "null";
  message.id_is_known = false;
  if (message.kind != Message::Kind::request && message.kind != Message::Kind::invalid) return;
  message.kind = Message::Kind::invalid;
  message.refusal = invalid_request("invalid-id-type");
}

namespace {

// The fixed parts of messages. Copied with constant sizes, they cost a few instructions each.
constexpr char with_id[] = R"({"jsonrpc":"2.0","id":)";
constexpr char error_alone[] = R"({"jsonrpc":"2.0","error":)";
constexpr char without_id[] = R"({"jsonrpc":"2.0","method":)";
constexpr char result_follows[] = R"(,"result":)";
constexpr char error_follows[] = R"(,"error":)";
constexpr char method_follows[] = R"(,"method":)";
constexpr char params_follow[] = R"(,"params":)";

template <std::size_t size>
constexpr std::size_t length_of(const char (&)[size]) {
  return size - 1;
}

// The place goes from hand to hand and comes back, so that it stays in a register.
template <std::size_t size>
[[gnu::always_inline]] inline char* put(char* at, const char (&text)[size]) {
  std::memcpy(at, text, size - 1);
  return at + size - 1;
}

// The ends of a text, which overlap if it is shorter than both.
template <std::size_t part>
[[gnu::always_inline]] inline void put_ends(char* at, std::string_view text) {
  std::memcpy(at, text.data(), part);
  std::memcpy(at + text.size() - part, text.data() + text.size() - part, part);
}

// Ids and results are short as a rule: two copies that overlap are cheaper than a call.
[[gnu::always_inline]] inline char* put(char* at, std::string_view text) {
  const std::size_t size = text.size();
  if (size > 16) {
    std::memcpy(at, text.data(), size);
  } else if (size >= 8) {
    put_ends<8>(at, text);
  } else if (size >= 4) {
    put_ends<4>(at, text);
  } else if (size >= 2) {
    put_ends<2>(at, text);
  } else if (size == 1) {
    *at = text.front();
  }
  return at + size;
}

constexpr std::size_t params_frame(std::string_view params) { return params.empty() ? 0 : length_of(params_follow); }

}  // namespace

void EncodedMessage::append_to(std::string& out) const {
  const std::size_t before = out.size();
  out.resize(before + size_);
  copy_to(out.data() + before);
}

void EncodedMessage::copy_to(char* at) const {
  switch (kind_) {
    case Kind::result:
      at = put(put(put(at, with_id), id_), result_follows);
      break;
    case Kind::error:
      at = put(put(put(at, with_id), id_), error_follows);
      break;
    case Kind::request:
      at = put(put(put(put(at, with_id), id_), method_follows), method_);
      if (!payload_.empty()) at = put(at, params_follow);
      break;
    case Kind::notification:
      at = put(put(at, without_id), method_);
      if (!payload_.empty()) at = put(at, params_follow);
      break;
    case Kind::batch:
      at = put(at, "[");
      break;
    case Kind::whole:
      break;
    case Kind::error_without_id:
      at = put(at, error_alone);
      break;
  }
  at = put(at, payload_);
  *at = kind_ == Kind::batch ? ']' : '}';
}

EncodedMessage encode_result(std::string_view id, std::string_view result) {
  return {EncodedMessage::Kind::result, length_of(with_id) + length_of(result_follows) + 1, id, {}, result};
}

EncodedMessage encode_error(std::string_view id, std::string_view error) {
  return {EncodedMessage::Kind::error, length_of(with_id) + length_of(error_follows) + 1, id, {}, error};
}

EncodedMessage encode_error_without_id(std::string_view error) {
  return {EncodedMessage::Kind::error_without_id, length_of(error_alone) + 1, {}, {}, error};
}

EncodedMessage encode_request(std::string_view id, std::string_view quoted_method, std::string_view params) {
  const std::size_t frame = length_of(with_id) + length_of(method_follows) + params_frame(params) + 1;
  return {EncodedMessage::Kind::request, frame, id, quoted_method, params};
}

EncodedMessage encode_notification(std::string_view quoted_method, std::string_view params) {
  return {
      EncodedMessage::Kind::notification, length_of(without_id) + params_frame(params) + 1, {}, quoted_method, params};
}

EncodedMessage encode_batch(std::string_view answers) { return {EncodedMessage::Kind::batch, 2, {}, {}, answers}; }

EncodedMessage encoded(std::string_view message) {
  if (message.starts_with('[')) return encode_batch(message.substr(1, message.size() - 2));
  return {EncodedMessage::Kind::whole, 1, {}, {}, message.substr(0, message.size() - 1)};
}

std::string encode(const Error& error) {
  if (!error.spelling().empty()) return error.spelling();
  std::string out = R"({"code":)" + std::to_string(error.code()) + R"(,"message":)";
  append_string(out, error.message());
  if (!error.data().empty()) out.append(R"(,"data":)").append(error.data());
  return out + '}';
}

Error decode_error(std::string_view object) {
  std::optional<int> code;
  std::optional<std::string> message;
  std::string data;
  bool is_proper = object.starts_with('{');
  const auto take = [&](std::string_view name, std::string_view value) {
    if (name == "code" && !code && json_type(value) == "number") {
      const std::optional<std::int64_t> whole = decode_whole<std::int64_t>(value);
      if (whole && std::in_range<int>(*whole)) code = static_cast<int>(*whole);
      is_proper = is_proper && code;
    } else if (name == "message" && !message && value.starts_with('"')) {
      message = decode_string(value);
    } else if (name == "data" && data.empty()) {
      data = value;
    } else {
      is_proper = false;
    }
    return true;
  };
  if (is_proper) for_each_member(object, take);
  is_proper = is_proper && code && message;
  Error error(code.value_or(code::internal_error), message.value_or(""), Json::trusted(std::move(data)));
  if (is_proper) error.spelling_ = object;
  return error;
}

}  // namespace duet::rpc
