#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bridge/handshake.h"
#include "bridge/source_file.h"
#include "bridge/text.h"

namespace duet::bridge {

/// A document as a server knows it.
struct Document {
  std::string uri = {};
  std::string language = {};
  Text text = Text();
  std::int64_t version = 0;            ///< never used twice, not even for two documents
  bool is_first_text = true;           ///< this life of the server has known no other text of this path
  bool is_examined = false;            ///< the server has had time to look at it since it was opened
  std::optional<std::uint64_t> owner;  ///< the client whose text it is; none: what is on disk
  FileStamp stamp = {};                ///< of a text from disk
  std::uint64_t used = 0;              ///< larger: later
};

/// The documents that are open in one language server, through all of its lives.
///
/// A text is what is on disk, looked at again whenever somebody asks, unless a client has said otherwise: then it is
/// the client's until he closes the document or goes away. Whatever changes is sent at once, so that a question that
/// follows is about the new text. Of those from disk only the ones used last stay open. Positions in a client's
/// changes count as the server does. For the loop's thread only.
class Documents {
 public:
  static constexpr std::size_t most_from_disk = 64;
  static constexpr std::size_t most_bytes_from_disk = 256U << 20U;
  static constexpr std::size_t most_from_clients = 256U << 20U;  ///< bytes
  using Notify = std::function<void(std::string_view method, const std::string& params)>;

  explicit Documents(Notify notify, std::size_t most_bytes = most_bytes_from_disk)
      : notify_(std::move(notify)), most_bytes_(most_bytes) {}

  /// A new life of the server begins: every document is opened, with its text as it is now.
  void open_all(const Capabilities& capabilities);
  /// The server is gone; until the next life nothing is sent.
  void server_ended() { alive_ = false; }
  /// The server was let go, as it was not needed: only what clients have said is remembered.
  void forget_disk();

  /// Sends what has changed on disk: the answer to a question may depend on any open document.
  void send_changes(std::string_view but_of = {});
  /// The document with its present text, which the server knows by now, as it knows those of all others. nullptr: it
  /// cannot be read (errno), and if it was open it is no more. Valid until the next call.
  const Document* look(const std::string& path);
  const Document* find(const std::string& path) const;
  /// The open document that a server means by a path: clangd, for one, takes every `\` in a name for a `/`.
  std::string meant_by(const std::string& path) const;
  /// The text that was looked at last is still the present one. For a client that has not said it, the present one is
  /// what is on disk, though another one has said otherwise.
  bool is_current(const std::string& path, std::optional<std::uint64_t> asker = {}) const;
  std::size_t size() const { return documents_.size(); }
  /// No document has a larger version; those that are opened or changed from now on do.
  std::int64_t newest_version() const { return last_version_; }
  void note_examined(const std::string& path);
  /// The server has seen some text of this path already, though nobody has opened it.
  void note_known(const std::string& path);

  struct Change {
    std::optional<std::pair<Position, Position>> range;  ///< none: the whole text
    std::string text;
  };
  /// False: clients have too much open, and there it stays as it was.
  bool client_opens(std::uint64_t client, const std::string& path, std::string language, std::string text);
  /// False: there is no such document, or too much as above.
  bool client_changes(std::uint64_t client, const std::string& path, const std::vector<Change>& changes);
  void client_closes(const std::string& path);
  void client_gone(std::uint64_t client);

  using Map = std::map<std::string, Document, std::less<>>;  ///< by path
  bool has_clients() const;
  /// What clients have said, for a server that takes the place of this one, which knows nothing of it any more.
  Map take_clients();
  /// False: clients have too much open.
  bool adopt(const std::string& path, Document document);

 private:
  bool has_room(std::size_t more) const;

  Document& make(const std::string& path);
  bool read_again(const std::string& path, Document& document);
  void set_text(const std::string& path, Document& document, Text text);
  void send_open(const std::string& path, Document& document);
  void send_text(const Document& document);
  void send_change(const Document& document);
  void close(Map::iterator document);
  void read_all();
  void close_least_used();

  Notify notify_;
  std::size_t most_bytes_;
  Capabilities capabilities_;
  bool alive_ = false;
  Map documents_;
  std::set<std::string, std::less<>> known_;  // paths that this life of the server has seen a text of
  std::size_t known_bytes_ = 0;
  bool knows_all_ = false;  // too many to be remembered: it may have seen any
  std::int64_t last_version_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace duet::bridge
