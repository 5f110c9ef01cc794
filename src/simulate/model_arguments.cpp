#include "simulate/model_arguments.h"

#include <stdexcept>

namespace duet::simulate {
namespace {

std::string quoted_at(const std::string& text, std::size_t& at) {
  std::string element;
  for (++at; text.at(at) != '"'; ++at) {
    if (text[at] == '\\') ++at;
    element += text.at(at);
  }
  ++at;
  return element;
}

}  // namespace

std::string ident_of(const std::string& id, const std::string& key) { return key.empty() ? id : "key " + key; }

std::vector<Argument> elements_of(const Argument& array) {
  std::vector<Argument> elements;
  if (!array) return elements;
  const std::string& text = *array;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') throw std::invalid_argument("no array: " + text);
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    if (text[at] == '"') {
      elements.emplace_back(quoted_at(text, at));
      continue;
    }
    const std::size_t end = text.find_first_of(",}", at);
    const std::string element = text.substr(at, end - at);
    elements.push_back(element == "NULL" ? Argument() : Argument(element));
    at = end;
  }
  return elements;
}

std::vector<std::string> Arguments::texts(std::size_t i) const {
  std::vector<std::string> all;
  for (const Argument& each : list(i)) all.push_back(each.value_or(""));
  return all;
}

std::vector<std::int64_t> Arguments::numbers(std::size_t i) const {
  std::vector<std::int64_t> all;
  for (const Argument& each : list(i)) all.push_back(std::stoll(each.value()));
  return all;
}

Argument Arguments::element(std::size_t i, std::size_t place) const {
  lists_.resize(values_.size());
  if (!lists_.at(i)) lists_[i] = list(i);
  return place < lists_[i]->size() ? (*lists_[i])[place] : Argument();
}

std::optional<std::int64_t> Arguments::number(std::size_t i, std::size_t place) const {
  const Argument value = element(i, place);
  return value ? std::optional<std::int64_t>(std::stoll(*value)) : std::nullopt;
}

}  // namespace duet::simulate
