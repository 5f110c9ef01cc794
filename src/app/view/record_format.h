#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

namespace duet::app {

/// The text of --format: `{id} {state} {error.reason}`, a line for each record.
///
/// `{name}` is a field, with dots for what is inside it; `{{` and `}}` are braces, `\t`, `\n` and `\\` what they are in
/// C. A text stands as it is, null and what is not there as nothing, everything else as JSON.
class RecordFormat {
 public:
  /// `fields`: the names a record has, `error.reason` being one inside `error`, and `labels.` saying that any name may
  /// be inside `labels`. The error is a sentence that names them.
  static tl::expected<RecordFormat, std::string> parse(std::string_view text, std::span<const std::string_view> fields);

  /// With a line end. `harmless`: for a terminal, which no value may steer.
  std::string line(const boost::json::object& record, bool harmless) const;

 private:
  struct Part {
    std::string text;  // as it is, if there is no path
    std::string path;  // of a field
  };

  std::vector<Part> parts_;
};

}  // namespace duet::app
