#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "duet/rpc/error.h"

namespace duet::rpc {

/// What a JSON array is: refused (stdio), a batch (the socket), or no message at all (inside a batch).
enum class Batches : std::uint8_t { refused, allowed, inside_another };

/// The most members a batch may have.
inline constexpr std::size_t max_batch = 1000;

/// One JSON text, taken apart by the rules of the contract. Slices point into the decoded text and
/// live as long as it does. Texts of ids, params, results and errors are raw JSON, byte for byte.
struct Message {
  enum class Kind : std::uint8_t { request, notification, response, batch, invalid };

  Kind kind = Kind::invalid;
  bool is_json = true;           ///< false: not even JSON, so the frame's length may be wrong too
  std::string_view id = "null";  ///< of a request or response; of an invalid message what to answer with
  bool id_is_known = false;      ///< the id is the text's own, not what stands for none
  std::string_view method;       ///< escapes resolved; of an invalid object too, if it has one
  std::string_view params;       ///< empty when absent or null
  std::string_view result;       ///< of a response
  std::string_view error;        ///< of a response
  std::string_view batch;        ///< the array of a batch: 1 to max_batch members
  std::optional<Error> refusal;  ///< of an invalid message

 private:
  friend Message decode(std::string_view text, Batches batches);
  std::unique_ptr<std::string> method_text_;  // when the method was spelt with escapes
};

/// Never throws on bad input. The first rule that is broken decides the refusal.
Message decode(std::string_view text, Batches batches);
/// Makes a request whose id is neither a string nor an integer (null, 1.5, 1e2) an invalid one.
void refuse_loose_id(Message& message);

/// An outgoing message, not yet copied together, so that its length is known before a byte is written.
/// Points at its parts.
class EncodedMessage {
 public:
  std::size_t size() const { return size_; }
  void append_to(std::string& out) const;
  void copy_to(char* at) const;  ///< size() bytes
  /// How many bytes before the last one are raw JSON that somebody else spelt.
  std::size_t payload_size() const { return payload_.size(); }

 private:
  friend EncodedMessage encode_result(std::string_view id, std::string_view result);
  friend EncodedMessage encode_error(std::string_view id, std::string_view error);
  friend EncodedMessage encode_error_without_id(std::string_view error);
  friend EncodedMessage encode_request(std::string_view id, std::string_view quoted_method, std::string_view params);
  friend EncodedMessage encode_notification(std::string_view quoted_method, std::string_view params);
  friend EncodedMessage encode_batch(std::string_view answers);
  friend EncodedMessage encoded(std::string_view message);

  enum class Kind : std::uint8_t { result, error, request, notification, batch, whole, error_without_id };
  EncodedMessage(Kind kind, std::size_t frame, std::string_view id, std::string_view method, std::string_view payload)
      : kind_(kind),
        size_(frame + id.size() + method.size() + payload.size()),
        id_(id),
        method_(method),
        payload_(payload) {}

  Kind kind_;
  std::size_t size_;
  std::string_view id_;
  std::string_view method_;
  std::string_view payload_;
};

EncodedMessage encode_result(std::string_view id, std::string_view result);
/// `error` is the text of encode(Error), or a raw error object that is passed on.
EncodedMessage encode_error(std::string_view id, std::string_view error);
/// For protocols where an id that is not known is absent, not null.
EncodedMessage encode_error_without_id(std::string_view error);
std::string encode(const Error& error);
/// The error of a response, whatever it is. encode() gives it back byte for byte, unless it is not a whole `code`, a
/// `message`, perhaps `data`, and nothing else.
Error decode_error(std::string_view object);
/// `quoted_method` is a JSON string; `params` may be empty.
EncodedMessage encode_request(std::string_view id, std::string_view quoted_method, std::string_view params);
EncodedMessage encode_notification(std::string_view quoted_method, std::string_view params);
/// `answers`: encoded responses with commas between them.
EncodedMessage encode_batch(std::string_view answers);
/// What append_to() made of another one, for a message that was kept.
EncodedMessage encoded(std::string_view message);

}  // namespace duet::rpc
