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

// A certificate knows nothing of network cards, nor of the dot that may end a whole DNS name.
std::string certified_name(const std::string& host) {
  std::string name = host.substr(0, host.find('%'));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

std::string server_name(const CommandLine& line, const TlsUrl& url) {
  const std::optional<std::string> name = given(line, "server-name");
  if (name && !is_host(*name)) throw Failure("--server-name is '" + *name + "': it is a DNS name or an IP address");
  return certified_name(name.value_or(url.host));
}

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
  if (url) return FarPlace{*url, identity_file(line), server_name(line, *url)};
  for (const char* const option : {"identity", "server-name"}) {
    if (given(line, option)) throw Failure("--" + std::string(option) + " goes with --connect tls://HOST");
  }
  return std::nullopt;
}

}  // namespace duet::app
