#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace duet::app {

/// The shapes of what the `lsp.*` methods answer; the bridge makes them. The names are those of the JSON members.

/// Where something is. A language server may leave the range out; the line's text is there if the file can be read.
struct LspRange {
  std::optional<std::size_t> line;
  std::optional<std::size_t> column;
  std::optional<std::size_t> endLine;
  std::optional<std::size_t> endColumn;
  std::optional<std::string> text;
};
BOOST_DESCRIBE_STRUCT(LspRange, (), (line, column, endLine, endColumn, text))

enum class LspMarkup : std::uint8_t { markdown, plaintext };
BOOST_DESCRIBE_ENUM(LspMarkup, markdown, plaintext)

/// How far an answer can be relied on. `fresh`: the server had the text that the asked file has; else `reason` says why
/// that is not sure. `complete` is false while the server says that it works on something, which `indexing` names.
struct LspStanding {
  std::string server;
  bool fresh;
  std::optional<std::string> reason;
  bool complete;
  std::optional<std::string> indexing;
  std::optional<std::string> note;
};
BOOST_DESCRIBE_STRUCT(LspStanding, (), (server, fresh, reason, complete, indexing, note))

/// The place that was asked about.
struct LspAsked {
  std::string file;
  std::size_t line;
  std::size_t column;
  std::string text;
};
BOOST_DESCRIBE_STRUCT(LspAsked, (), (file, line, column, text))

struct LspHover : LspRange, LspStanding {
  std::optional<std::string> contents;
  std::optional<LspMarkup> kind;
  LspAsked at;
};
BOOST_DESCRIBE_STRUCT(LspHover, (LspRange, LspStanding), (contents, kind, at))

/// In a file, or in something that only the server knows.
struct LspPlace : LspRange {
  std::optional<std::string> file;
  std::optional<std::string> uri;
};
BOOST_DESCRIBE_STRUCT(LspPlace, (LspRange), (file, uri))

struct LspPlaces : LspStanding {
  std::vector<LspPlace> places;
  std::optional<std::size_t> more;
  LspAsked at;
};
BOOST_DESCRIBE_STRUCT(LspPlaces, (LspStanding), (places, more, at))

struct LspCompletionItem {
  std::string label;
  std::string kind;
  std::optional<std::string> detail;
  std::optional<std::string> documentation;
  std::optional<std::string> insert;
};
BOOST_DESCRIBE_STRUCT(LspCompletionItem, (), (label, kind, detail, documentation, insert))

struct LspCompletion : LspStanding {
  std::vector<LspCompletionItem> items;
  bool incomplete;
  std::optional<std::size_t> more;
  LspAsked at;
};
BOOST_DESCRIBE_STRUCT(LspCompletion, (LspStanding), (items, incomplete, more, at))

/// All of a symbol, from its first line to its last.
struct LspExtent {
  std::size_t line;
  std::size_t column;
  std::size_t endLine;
  std::size_t endColumn;
};
BOOST_DESCRIBE_STRUCT(LspExtent, (), (line, column, endLine, endColumn))

struct LspSymbol : LspPlace {
  std::string name;
  std::string kind;
  std::optional<std::string> detail;
  std::optional<std::string> container;
  std::optional<LspExtent> extent;
  std::optional<std::vector<LspSymbol>> children;
};
BOOST_DESCRIBE_STRUCT(LspSymbol, (LspPlace), (name, kind, detail, container, extent, children))

struct LspSymbols : LspStanding {
  std::vector<LspSymbol> symbols;
};
BOOST_DESCRIBE_STRUCT(LspSymbols, (LspStanding), (symbols))

struct LspFoundSymbol : LspPlace {
  std::string path;
  std::string name;
  std::string kind;
  std::optional<std::string> detail;
  std::optional<LspExtent> extent;
};
BOOST_DESCRIBE_STRUCT(LspFoundSymbol, (LspPlace), (path, name, kind, detail, extent))

struct LspFound : LspStanding {
  std::vector<LspFoundSymbol> symbols;
  std::optional<std::size_t> more;
};
BOOST_DESCRIBE_STRUCT(LspFound, (LspStanding), (symbols, more))

struct LspDiagnostic : LspRange {
  std::string severity;
  std::string message;
  std::optional<std::string> source;
  std::optional<boost::json::value> code;
};
BOOST_DESCRIBE_STRUCT(LspDiagnostic, (LspRange), (severity, message, source, code))

struct LspDiagnostics : LspStanding {
  std::string file;
  std::vector<LspDiagnostic> diagnostics;
};
BOOST_DESCRIBE_STRUCT(LspDiagnostics, (LspStanding), (file, diagnostics))

struct LspServer {
  std::string name;
  std::string root;
  std::string state;
  std::vector<std::string> command;
  std::optional<std::int64_t> pid;
  std::optional<std::string> serverName;
  std::optional<std::string> serverVersion;
  std::optional<std::string> encoding;
  std::optional<std::string> indexing;
  std::optional<std::string> compileCommands;
  std::optional<std::string> note;
  std::size_t documents;
  std::size_t pending;
  std::size_t failures;
  std::optional<boost::json::object> failure;
};
BOOST_DESCRIBE_STRUCT(LspServer, (),
                      (name, root, state, command, pid, serverName, serverVersion, encoding, indexing, compileCommands,
                       note, documents, pending, failures, failure))

struct LspStarted : LspServer {
  boost::json::object capabilities;
};
BOOST_DESCRIBE_STRUCT(LspStarted, (LspServer), (capabilities))

struct LspServers {
  std::vector<LspServer> servers;
};
BOOST_DESCRIBE_STRUCT(LspServers, (), (servers))

struct LspStopped {
  std::size_t stopped;
};
BOOST_DESCRIBE_STRUCT(LspStopped, (), (stopped))

struct LspSent {
  bool sent;
};
BOOST_DESCRIBE_STRUCT(LspSent, (), (sent))

}  // namespace duet::app
