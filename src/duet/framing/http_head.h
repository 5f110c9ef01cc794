#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "duet/framing/http_fault.h"

namespace duet::framing {

/// A head may have so many bytes, its end included, so many fields, and a target so long.
inline constexpr std::size_t http_max_head = 16U * 1024;
inline constexpr std::size_t http_max_fields = 100;
inline constexpr std::size_t http_max_target = 2048;

/// One line of a head; the value has no blanks at its ends.
struct HttpField {
  std::string_view name;
  std::string_view value;
};

/// The fields of a head, as slices of its text: nothing is stored. Names are given in lower case and
/// found in any.
class HttpFields {
 public:
  class Iterator {
   public:
    explicit Iterator(std::string_view lines) : rest_(lines) { ++*this; }
    const HttpField& operator*() const { return field_; }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return is_end_; }

   private:
    std::string_view rest_;
    HttpField field_;
    bool is_end_ = false;
  };

  HttpFields() = default;
  /// Of well-formed lines, each with its end.
  explicit HttpFields(std::string_view lines) : lines_(lines) {}

  Iterator begin() const { return Iterator(lines_); }
  static std::default_sentinel_t end() { return {}; }

  std::optional<std::string_view> find(std::string_view name) const;  ///< the first of that name
  std::size_t count(std::string_view name) const;
  /// Whether a word, in lower case, is among the comma separated ones of the fields of that name.
  bool lists(std::string_view name, std::string_view word) const;

 private:
  std::string_view lines_;
};

enum class HttpExpectation : std::uint8_t { none, to_continue, other };

/// A request without its body. All texts are slices of what was read.
struct HttpHead {
  std::string_view method;
  std::string_view target;  ///< begins with `/`
  std::string_view path;    ///< of the target, up to its first `?`
  std::string_view query;   ///< what follows that, as it came
  HttpFields fields;
  std::string_view host;  ///< as it came
  std::uint64_t content_length = 0;
  bool keeps_alive = true;  ///< false: the client wants the connection closed after the answer
  HttpExpectation expectation = HttpExpectation::none;
};

/// Looks through a head as its bytes arrive, each byte once. A fault of row 4 (limits) is told as soon
/// as it is known, and so is a byte that no head can have; all others when the head is whole, so
/// that of several faults the first in the order of HttpFault counts.
class HttpHeadScan {
 public:
  enum class Found : std::uint8_t { nothing, head, fault };

  /// `bytes` are all there are, from the head's first on.
  Found advance(std::string_view bytes);
  HttpFault fault() const { return fault_; }    ///< of Found::fault
  HttpHead head(std::string_view bytes) const;  ///< of Found::head
  std::size_t size() const { return at_; }      ///< of that head

 private:
  bool target_is_too_long() const;
  void note_blank();
  void end_target();
  bool end_of_line(std::string_view text);
  void read_request_line(std::string_view line);
  void read_field(std::string_view line);
  void read_special_field(std::string_view name, std::string_view value);
  void read_length(std::string_view digits);
  void read_connection(std::string_view list);
  std::optional<HttpFault> verdict() const;
  Found refuse(HttpFault fault);

  std::size_t at_ = 0;          // what is before this has been looked at
  std::size_t line_begin_ = 0;  // where the unfinished line starts
  // In the request line; 0: not there yet.
  std::size_t target_begin_ = 0;
  std::size_t target_end_ = 0;
  std::size_t fields_begin_ = 0;

  std::size_t fields_ = 0;
  std::size_t hosts_ = 0;
  std::size_t lengths_ = 0;
  std::uint64_t length_ = 0;
  bool is_malformed_ = false;
  bool is_version_1_1_ = false;
  bool takes_no_body_ = false;
  bool has_transfer_encoding_ = false;
  bool keeps_alive_ = true;
  HttpExpectation expectation_ = HttpExpectation::none;
  HttpFault fault_ = HttpFault::malformed;
};

}  // namespace duet::framing
