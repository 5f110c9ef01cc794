#include "app/client/far_place.h"

#include <cstdlib>
#include <filesystem>

#include "app/project/failure.h"
#include "app/settings/settings.h"

namespace duet::app {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::string> given(const CommandLine& line, std::string_view option) {
  return find_option(line.command, option) == nullptr ? std::nullopt : line.text(option);
}

// A certificate knows nothing of network cards.
std::string without_card(const std::string& host) { return host.substr(0, host.find('%')); }

// Of the environment, which goes for every command of a shell.
std::optional<TlsUrl> url_of_environment(const CommandLine& line) {
  const std::string text = variable("DUET_RPC_CONNECT");
  if (text.empty() || given(line, "project") || given(line, "socket")) return std::nullopt;
  std::optional<TlsUrl> url = parse_tls_url(text);
  if (!url) throw Failure("DUET_RPC_CONNECT is '" + text + "': it is " + std::string(tls_url_forms));
  if (line.command->only_here.empty()) return url;
  throw Failure("DUET_RPC_CONNECT leads to another machine, and '" + std::string(line.path()) + "' is for this one: " +
                std::string(line.command->only_here) + "; unset it, or give --project, for the daemon here");
}

std::string identity_file(const CommandLine& line) {
  if (const auto file = given(line, "identity")) return *file;
  if (std::string file = variable("DUET_RPC_IDENTITY"); !file.empty()) return file;
  const SettingsPlaces places = settings_places();
  const std::filesystem::path settings = places.only.empty() ? places.user : places.only;
  if (settings.empty()) throw Failure("there is no HOME to look for an identity in: give --identity FILE");
  return settings.parent_path() / "tls" / "client.pem";
}

}  // namespace

std::optional<FarPlace> far_place(const CommandLine& line) {
  const std::optional<std::string> text = given(line, "connect");
  const std::optional<TlsUrl> url = text ? parse_tls_url(*text) : url_of_environment(line);
  if (url) return FarPlace{*url, identity_file(line), given(line, "server-name").value_or(without_card(url->host))};
  for (const char* const option : {"identity", "server-name"}) {
    if (given(line, option)) throw Failure("--" + std::string(option) + " goes with --connect tls://HOST");
  }
  return std::nullopt;
}

}  // namespace duet::app
