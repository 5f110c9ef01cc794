#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>

#include "bridge/documents.h"
#include "bridge/failure.h"
#include "duet/base/clock.h"

namespace duet::bridge {

/// What a server has published about its open documents (`textDocument/publishDiagnostics`).
///
/// Only the latest of each document is kept, the first 4 MiB of them, and only while the document is open. Who waits
/// for news of a document listens. For the loop's thread only.
class Diagnostics {
 public:
  static constexpr std::size_t most_bytes = 4U << 20U;  ///< as text, of one document

  struct Published {
    std::optional<std::int64_t> version;  ///< none: the server did not say which text they are for
    boost::json::array items;             ///< as LSP has them
    base::TimePoint at;
    std::int64_t sent_version = 0;  ///< of the text that the server had been sent when they came
  };

  explicit Diagnostics(Documents& documents) : documents_(documents) {}

  void take(std::string_view params, base::TimePoint now);
  const Published* find(const std::string& path) const;
  /// False: the server was found to publish nothing about documents it is shown.
  bool may_publish() const { return has_published_ || !has_kept_silent_; }
  void note_silence() { has_kept_silent_ = true; }
  /// How long the server was silent about a text before it said something, at most. Somebody was waiting for that.
  void note_pause(base::Duration pause) { longest_pause_ = std::max(longest_pause_, pause); }
  base::Duration longest_pause() const { return longest_pause_; }

  /// The server is down: nothing is known any more, and who listens is told.
  void server_down(const Failure& why);

  /// What a listener hears: each publication for its document, and that the server is down.
  struct News {
    std::function<void()> published;
    std::function<void(const Failure&)> down;
  };
  /// Until the returned number is given to unlisten().
  std::uint64_t listen(std::string path, News news);
  void unlisten(std::uint64_t listener) { listeners_.erase(listener); }
  bool is_awaited() const { return !listeners_.empty(); }

 private:
  struct Listener {
    std::string path;
    News news;
  };

  void drop_closed();

  Documents& documents_;
  std::map<std::string, Published, std::less<>> published_;
  std::map<std::uint64_t, Listener> listeners_;
  std::uint64_t last_listener_ = 0;
  bool has_published_ = false;
  bool has_kept_silent_ = false;
  base::Duration longest_pause_{};
};

/// They are surely for the text that the document has now. Without a version that is so only for the first text that
/// the server ever knew: later ones may still be for an earlier one, as long as the server has not been silent for a
/// while (diagnostics_question.h).
bool is_for_text_of(const Diagnostics::Published& published, const Document& document);

}  // namespace duet::bridge
