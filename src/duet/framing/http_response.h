#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duet/framing/http_fault.h"

namespace duet::framing {

/// What differs from one response head to another. The rest every one has: the fields that keep a
/// browser from doing more with a response than it is for. The texts are the program's own, and
/// never a part of a request.
struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = {};
  /// Of the body, which its owner writes behind the head, or leaves out for HEAD. Without a number the
  /// body ends with the connection, so that `closes` must be set.
  std::optional<std::uint64_t> content_length = 0;
  bool closes = false;           ///< the connection, after this response
  std::string_view etag = {};    ///< in quotes; what has one may be kept and asked for again, all else not
  std::string_view fields = {};  ///< further lines, each with its end
};

void append_head(std::string& out, const HttpResponse& response);

/// What a refusal needs to know of its request.
struct HttpRefused {
  bool closes = false;                       ///< though the fault alone would not
  bool is_head = false;                      ///< HEAD gets no body
  std::string_view allow = {};               ///< of HttpFault::method: the methods that there are
  std::optional<unsigned> retry_after = {};  ///< seconds, of HttpFault::too_many_codes
};

/// Head and body: `{"error":WORD,"message":TEXT}`.
void append_refusal(std::string& out, HttpFault fault, const HttpRefused& refused = {});

void append_no_content(std::string& out, bool closes);                           ///< 204
void append_not_modified(std::string& out, std::string_view etag, bool closes);  ///< 304
void append_continue(std::string& out);                                          ///< 100
/// 101; the key as RFC 6455 wants it answered, the subprotocol if one was chosen.
void append_switching(std::string& out, std::string_view accepted_key, std::string_view protocol);
/// The head of a text/event-stream. It has no length: the stream ends with the connection.
void append_event_stream(std::string& out);

}  // namespace duet::framing
