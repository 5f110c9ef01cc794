#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "task/postgres/result.h"
#include "task/task.h"

// What the functions of the queue's schema give and take, as values of ours.

namespace duet::task::postgres {

/// Labels are joined by this in arguments and columns: none may hold it.
inline constexpr char between_labels = '\x1f';

std::string joined(const std::vector<std::string>& labels);
std::vector<std::string> split(std::string_view labels);

/// Of a row of `read_task_v1` and its like.
Task task_of(const Result& rows, std::size_t row);

/// What a function that gives JSON text answered. Empty if that is none: then the database is of another version, and
/// whoever reads members finds none.
boost::json::object object_of(const Result& answer);

/// Members of such an object; what is not there, or of another type, is 0, empty, false or none.
std::int64_t number_in(const boost::json::object& object, std::string_view name);
std::optional<std::int64_t> optional_in(const boost::json::object& object, std::string_view name);
std::string text_in(const boost::json::object& object, std::string_view name);
bool flag_in(const boost::json::object& object, std::string_view name);
/// Empty if it is no array.
const boost::json::array& array_in(const boost::json::object& object, std::string_view name);
/// Without those that are no strings.
std::vector<std::string> texts_in(const boost::json::object& object, std::string_view name);

base::UtcTime time_of(std::int64_t milliseconds);

/// The beginning of a prompt as the database keeps it: JSON text, of at most so many bytes of the prompt.
inline constexpr std::size_t kept_prompt = 1024;
std::string prompt_text(std::string_view prompt);

/// 128 random bits as a UUID.
std::string random_uuid();

}  // namespace duet::task::postgres
