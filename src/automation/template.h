#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "automation/event.h"

namespace duet::automation {

/// The field that a template asks for and the event does not have.
struct MissingField {
  std::string name;
};

/// Replaces `{{payload.path}}` and the like by the event's values, once: what a value contains stays as it is. Null
/// becomes nothing. Braces around anything but a field's name are text.
std::variant<std::string, MissingField> fill_template(std::string_view text, const Event& event);

/// The fields that a template asks for, in order.
std::vector<std::string> fields_in(std::string_view text);

}  // namespace duet::automation
