#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "duet/api.h"
#include "duet/rpc/json.h"

namespace duet::rpc {

namespace code {
inline constexpr int parse_error = -32700;
inline constexpr int invalid_request = -32600;
inline constexpr int method_not_found = -32601;
inline constexpr int invalid_params = -32602;
inline constexpr int internal_error = -32603;
inline constexpr int request_cancelled = -32800;
inline constexpr int not_permitted = -32005;
}  // namespace code

/// What goes into a response's `error`. Handlers throw one to refuse a request; anything else they
/// throw becomes internal_error(), so that nothing about the inside reaches a client.
class DUET_API Error : public std::exception {
 public:
  /// `data` is any value: a text, `{{"why", "because"}}`, a described struct. Without it there is none.
  Error(int code, std::string message, const Json& data = {});

  int code() const { return code_; }
  const std::string& message() const { return message_; }
  /// JSON text; empty for none.
  const std::string& data() const { return data_; }
  /// How somebody else has spelt all of it; empty if nobody has.
  const std::string& spelling() const { return spelling_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  int code_;
  std::string message_;
  std::string data_;
  std::string spelling_;

  friend Error decode_error(std::string_view object);
};

/// The errors of the contract, with their canonical texts and their `data`.
DUET_API Error parse_error(std::string_view reason);
DUET_API Error invalid_request(std::string_view reason, std::string_view detail = {});
DUET_API Error batch_not_supported();
DUET_API Error method_not_found();
DUET_API Error invalid_params(std::string_view param, std::string_view expected, std::string_view received,
                              const Json& accepted = {});
DUET_API Error internal_error();
DUET_API Error request_cancelled();
/// Of a guard: see peer::Methods::set_guard().
DUET_API Error not_permitted(std::string_view method, std::string_view needs, std::string_view role);

}  // namespace duet::rpc
