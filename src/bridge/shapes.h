#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "bridge/documents.h"
#include "bridge/text.h"

namespace duet::bridge {

/// Turns a server's ranges into places as people count, by the texts they are in: those of open documents, else what is
/// on disk. For one answer; a file is read once, and all of them have a bound in bytes.
class PlaceFinder {
 public:
  static constexpr std::size_t most_read = 128U << 20U;

  /// `newest`: Documents::newest_version() when the server was asked; what it says is about texts of that time.
  PlaceFinder(const Documents& documents, Encoding encoding,
              std::int64_t newest = std::numeric_limits<std::int64_t>::max())
      : documents_(documents), encoding_(encoding), newest_(newest) {}

  /// Adds `{line, column, endLine, endColumn}` of a range in the file, and `text`, its first line. Without the file's
  /// text columns are those of the server, counted from 1.
  void add(boost::json::object& out, const std::string& path, const boost::json::value* range);
  /// The same for an address; `file` too, or `uri` where that is no file here.
  void add_with_file(boost::json::object& out, std::string_view uri, const boost::json::value* range);
  /// There was a place in a document that has changed since, so it may be wrong.
  bool has_met_newer_text() const { return has_met_newer_text_; }

 private:
  const Text* text_of(const std::string& path);

  const Documents& documents_;
  Encoding encoding_;
  std::int64_t newest_;
  bool has_met_newer_text_ = false;
  std::map<std::string, Text> read_;
  std::size_t left_ = most_read;
};

/// How many places or items an answer has if nobody says; `more` tells how many were left out.
inline constexpr std::size_t most_places = 1000;
/// Of a line that is shown, in characters.
inline constexpr std::size_t most_of_line = 400;

/// Answers of servers as people want them. Each takes whatever LSP allows as a result, and nonsense as nothing.
/// `{contents, kind, line?, …}`; contents is null where there is nothing to say.
boost::json::object shape_hover(const boost::json::value& result, const std::string& path, PlaceFinder& places);
/// `{places: [{file, line, column, endLine, endColumn, text}], more?}`
boost::json::object shape_places(const boost::json::value& result, PlaceFinder& places, std::size_t most = most_places);
/// `{items: [{label, kind, detail?, documentation?, insert?}], incomplete, more?}`, in the server's order of preference
boost::json::object shape_completion(const boost::json::value& result);
/// `{symbols: [{name, kind, detail?, container?, line, …, extent?, children?}]}`
boost::json::object shape_symbols(const boost::json::value& result, const std::string& path, PlaceFinder& places);
/// `[{line, column, endLine, endColumn, severity, message, source?, code?, text}]`
boost::json::array shape_diagnostics(const boost::json::array& items, const std::string& path, PlaceFinder& places);

/// `function` and so on; `symbol` for a kind that nobody knows.
std::string_view symbol_kind(const boost::json::value& symbol);
/// Adds `extent`, all of the symbol and not only its name, if the server tells that.
void add_extent(boost::json::object& out, const boost::json::value& symbol, const std::string& path,
                PlaceFinder& places);

/// A path as text: as it is if that is UTF-8, else as an address, which names every byte.
std::string path_text(const std::string& path);

}  // namespace duet::bridge
