#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/json/value.hpp>
#include <boost/json/value_ref.hpp>

#include "duet/api.h"
#include "duet/rpc/value.h"

namespace duet::peer {

/// The result of a request as JSON text: made from a value, or raw where a handler has the text already.
/// A handler may return whatever a boost::json::value can be made from: `true`, `5`, `{{"pong", true}}`.
class DUET_API Answer {
 public:
  template <typename Value>
  requires(std::constructible_from<boost::json::value, Value> && !std::same_as<std::remove_cvref_t<Value>, Answer>)
      Answer(Value&& value)  // NOLINT(google-explicit-constructor): meant
      : Answer(rpc::to_text(boost::json::value(std::forward<Value>(value))), true) {}
  Answer(const boost::json::value& value) : Answer(rpc::to_text(value), true) {}  // NOLINT: meant
  Answer(std::initializer_list<boost::json::value_ref> values) : Answer(boost::json::value(values)) {}
  Answer(Answer&& other) noexcept
      : owned_(std::move(other.owned_)),
        text_(other.owns_ ? std::string_view(owned_) : other.text_),
        owns_(other.owns_) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  Answer& operator=(Answer&&) = delete;
  ~Answer() = default;

  /// Valid JSON text, taken over.
  static Answer raw(std::string text) { return Answer(std::move(text), true); }
  /// Valid JSON text that outlives the handler's call, such as a slice of the request.
  static Answer view(std::string_view text) { return Answer(text, false); }

  std::string_view text() const { return text_; }

 private:
  Answer(std::string text, bool owns) : owned_(std::move(text)), text_(owned_), owns_(owns) {}
  Answer(std::string_view text, bool owns) : text_(text), owns_(owns) {}

  std::string owned_;
  std::string_view text_;
  bool owns_;
};

}  // namespace duet::peer
