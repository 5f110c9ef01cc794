#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "automation/event.h"

namespace duet::automation {

/// The field that a template asks for and the event does not have.
struct MissingField {
  std::string name;
};

/// Replaces `{{payload.path}}` and the like by the event's values, once: what a value contains stays as it is. Null
/// becomes nothing. Braces around anything but a field's name are text.
std::variant<std::string, MissingField> fill_template(std::string_view text, const Event& event);

}  // namespace duet::automation
