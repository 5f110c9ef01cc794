#include "app/client/browser.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

namespace duet::app {
namespace {

std::string variable(const process::Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

bool has_display(const process::Environment& environment) {
  return !variable(environment, "DISPLAY").empty() || !variable(environment, "WAYLAND_DISPLAY").empty();
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

}  // namespace

std::vector<std::string> browser_command(const process::Environment& environment, const std::string& url) {
  if (!has_display(environment)) return {};
  const std::string named = variable(environment, "BROWSER");
  std::vector<std::string> words = words_of(named.substr(0, named.find(':')));
  if (words.empty()) words = {"xdg-open"};
  if (process::find_program(words.front(), variable(environment, "PATH")).empty()) return {};
  const auto place = std::find(words.begin() + 1, words.end(), "%s");
  if (place == words.end()) {
    words.push_back(url);
  } else {
    *place = url;
  }
  return words;
}

bool open_browser(const std::string& url) {
  const process::Environment environment = process::current_environment();
  const std::vector<std::string> command = browser_command(environment, url);
  if (command.empty()) return false;
  try {
    process::spawn({.arguments = command, .environment = environment});
    return true;
  } catch (const process::LaunchError&) {
    return false;  // the URL can be opened by hand
  }
}

}  // namespace duet::app
