#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <boost/json/value.hpp>

#include "duet/rpc/value.h"

namespace duet::peer {

/// The result of a request as JSON text: made from a value, or raw where a handler has the text already.
class Answer {
 public:
  Answer(const boost::json::value& value) : owned_(rpc::to_text(value)), text_(owned_), owns_(true) {}  // NOLINT: meant
  Answer(Answer&& other) noexcept
      : owned_(std::move(other.owned_)), text_(other.owns_ ? std::string_view(owned_) : other.text_), owns_(other.owns_) {}
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  Answer& operator=(Answer&&) = delete;
  ~Answer() = default;

  /// Valid JSON text, taken over.
  static Answer raw(std::string text) { return Answer(std::move(text), true); }
  /// Valid JSON text that outlives the handler's call, such as a slice of the request.
  static Answer view(std::string_view text) { return Answer(text); }

  std::string_view text() const { return text_; }

 private:
  Answer(std::string text, bool owns) : owned_(std::move(text)), text_(owned_), owns_(owns) {}
  explicit Answer(std::string_view text) : text_(text), owns_(false) {}

  std::string owned_;
  std::string_view text_;
  bool owns_;
};

}  // namespace duet::peer
