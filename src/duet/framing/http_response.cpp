#include "duet/framing/http_response.h"

namespace duet::framing {
namespace {

constexpr std::string_view fixed_fields =
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "X-Frame-Options: DENY\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\r\n";

std::string_view phrase_of(unsigned status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 426:
      return "Upgrade Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

bool has_no_body(unsigned status) { return status < 200 || status == 204 || status == 304; }

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

void append_head(std::string& out, const HttpResponse& response) {
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(phrase_of(response.status));
  out.append("\r\n").append(fixed_fields);
  append_field(out, "Cache-Control", response.etag.empty() ? "no-store" : "no-cache");
  if (!response.etag.empty()) append_field(out, "ETag", response.etag);
  if (!response.content_type.empty()) append_field(out, "Content-Type", response.content_type);
  if (response.content_length && !has_no_body(response.status))
    append_field(out, "Content-Length", std::to_string(*response.content_length));
  out.append(response.fields);
  if (response.closes) append_field(out, "Connection", "close");
  out.append("\r\n");
}

void append_refusal(std::string& out, HttpFault fault, const HttpRefused& refused) {
  const HttpRefusal& refusal = refusal_of(fault);
  std::string body = "{\"error\":\"";
  body.append(refusal.word).append("\",\"message\":\"").append(refusal.message).append("\"}");
  std::string fields(refusal.fields);
  if (!refused.allow.empty()) append_field(fields, "Allow", refused.allow);
  if (refused.retry_after) append_field(fields, "Retry-After", std::to_string(*refused.retry_after));
  append_head(out, {.status = refusal.status,
                    .content_type = "application/json",
                    .content_length = body.size(),
                    .closes = refusal.closes || refused.closes,
                    .fields = fields});
  if (!refused.is_head) out.append(body);
}

void append_no_content(std::string& out, bool closes) { append_head(out, {.status = 204, .closes = closes}); }

void append_not_modified(std::string& out, std::string_view etag, bool closes) {
  append_head(out, {.status = 304, .closes = closes, .etag = etag});
}

void append_continue(std::string& out) { out.append("HTTP/1.1 100 Continue\r\n\r\n"); }

void append_switching(std::string& out, std::string_view accepted_key, std::string_view protocol) {
  std::string fields = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
  append_field(fields, "Sec-WebSocket-Accept", accepted_key);
  if (!protocol.empty()) append_field(fields, "Sec-WebSocket-Protocol", protocol);
  append_head(out, {.status = 101, .fields = fields});
}

void append_event_stream(std::string& out) {
  append_head(out, {.content_type = "text/event-stream", .content_length = std::nullopt, .closes = true});
}

}  // namespace duet::framing
