#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bridge/documents.h"

namespace duet::bridge {

/// The file that params are about: that of `textDocument.uri`. `params` is JSON text.
std::optional<std::string> document_in(std::string_view params);

/// What a client says about the text of a document (didOpen, didChange, didClose) is taken into the documents, which
/// tell the server in their own words and with their own versions. False: it is another notification. Throws rpc::Error
/// if it is about a text but makes no sense.
bool take_document_notification(Documents& documents, std::uint64_t client, const std::string& path,
                                std::string_view method, std::string_view params);

}  // namespace duet::bridge
