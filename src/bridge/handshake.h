#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "bridge/text.h"
#include "duet/peer/methods.h"

namespace duet::bridge {

/// What a server said of itself in its answer to `initialize`, as far as anybody here needs it.
struct Capabilities {
  enum class Sync : std::uint8_t { none, full, incremental };

  std::string server_name = {};  ///< empty: it did not say
  std::string server_version = {};
  Encoding encoding = Encoding::utf16;
  bool takes_documents = true;  ///< wants didOpen and didClose
  Sync sync = Sync::full;
  bool wants_saves = false;
  bool pulls_diagnostics = false;
  boost::json::object all = {};  ///< as the server spelt them

  /// `hoverProvider` and the like: there, and not false.
  bool offers(std::string_view provider) const;
};

/// The params of `initialize`, as JSON text. `options`: what is for this server alone, JSON text or empty.
std::string initialize_params(const std::string& root, std::string_view client_version, std::string_view options = {});

/// nullopt: that is no answer to `initialize`. `result` is valid JSON. A server that does not say in which units it
/// counts does so in those of `usual`.
std::optional<Capabilities> read_initialize_result(std::string_view result, Encoding usual = Encoding::utf16);

/// What a server is answered that asks its client something. Nothing it asks for is done: edits are declined, messages
/// are shown to nobody, registrations are only noted.
void add_answers_to_server(peer::Methods& methods, const std::string& root);

}  // namespace duet::bridge
