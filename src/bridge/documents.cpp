#include "bridge/documents.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "bridge/choice.h"
#include "bridge/file_uri.h"
#include "duet/rpc/json_text.h"

namespace duet::bridge {
namespace {

std::string identifier(const Document& document) { return R"({"textDocument":{"uri":)" + rpc::quoted(document.uri); }

}  // namespace

void Documents::open_all(const Capabilities& capabilities) {
  capabilities_ = capabilities;
  known_.clear();
  known_bytes_ = 0;
  knows_all_ = false;
  read_all();
  alive_ = true;
  for (auto& [path, document] : documents_) send_open(path, document);
}

// While nothing is sent. Files may have grown.
void Documents::read_all() {
  for (auto at = documents_.begin(); at != documents_.end();) {
    const auto here = at++;
    Document& document = here->second;
    if (document.owner) continue;
    std::optional<SourceFile> file = read_source_file(here->first);
    if (!file) {
      documents_.erase(here);
      continue;
    }
    document.text = Text(std::move(file->bytes));
    document.stamp = file->stamp;
  }
  close_least_used();
}

void Documents::forget_disk() {
  std::erase_if(documents_, [](const Map::value_type& entry) { return !entry.second.owner; });
}

const Document* Documents::find(const std::string& path) const {
  const auto found = documents_.find(path);
  return found == documents_.end() ? nullptr : &found->second;
}

std::string Documents::meant_by(const std::string& path) const {
  if (documents_.contains(path)) return path;
  for (const auto& [own, document] : documents_) {
    std::string changed = own;
    std::ranges::replace(changed, '\\', '/');
    if (changed == path) return own;
  }
  return path;
}

void Documents::send_changes(std::string_view but_of) {
  for (auto at = documents_.begin(); at != documents_.end();) {
    const auto here = at++;
    if (here->second.owner || here->first == but_of) continue;
    if (!read_again(here->first, here->second)) close(here);
  }
}

const Document* Documents::look(const std::string& path) {
  send_changes(path);
  const auto found = documents_.find(path);
  if (found == documents_.end()) {
    std::optional<SourceFile> file = read_source_file(path);
    if (!file) return nullptr;
    Document& document = make(path);
    document.text = Text(std::move(file->bytes));
    document.stamp = file->stamp;
    send_open(path, document);
    close_least_used();
    return &document;
  }
  found->second.used = ++uses_;
  if (found->second.owner || read_again(path, found->second)) return &found->second;
  const int error = errno;
  close(found);
  errno = error;
  return nullptr;
}

bool Documents::is_current(const std::string& path, std::optional<std::uint64_t> asker) const {
  const Document* document = find(path);
  if (document == nullptr) return false;
  if (document->owner && asker.value_or(*document->owner) == *document->owner) return true;
  if (!document->owner && document->stamp.still_holds(path)) return true;
  const std::optional<SourceFile> file = read_source_file(path);
  return file && Text(file->bytes).str() == document->text.str();
}

// False: it cannot be read any more.
bool Documents::read_again(const std::string& path, Document& document) {
  if (document.stamp.still_holds(path)) return true;
  std::optional<SourceFile> file = read_source_file(path);
  if (!file) return false;
  document.stamp = file->stamp;
  set_text(path, document, Text(std::move(file->bytes)));
  return true;
}

Document& Documents::make(const std::string& path) {
  Document& document = documents_[path];
  document.uri = uri_of(path);
  document.language = language_of(path);
  document.used = ++uses_;
  return document;
}

void Documents::set_text(const std::string& path, Document& document, Text text) {
  if (text.str() == document.text.str()) return;
  document.text = std::move(text);
  document.version = ++last_version_;
  document.is_first_text = false;
  send_change(document);
  // What changed on disk was saved, and some servers look at files that depend on it only then.
  if (alive_ && !document.owner && capabilities_.wants_saves)
    notify_("textDocument/didSave", identifier(document) + "}}");
  note_known(path);
}

void Documents::note_examined(const std::string& path) {
  const auto found = documents_.find(path);
  if (found != documents_.end()) found->second.is_examined = true;
}

void Documents::note_known(const std::string& path) {
  constexpr std::size_t most_known = 100'000;
  constexpr std::size_t most_known_bytes = 16U << 20U;
  if (path.size() >= PATH_MAX || known_.contains(path)) return;  // no file has such a path
  if (known_.size() < most_known && known_bytes_ + path.size() <= most_known_bytes) {
    known_.insert(path);
    known_bytes_ += path.size();
  } else {
    knows_all_ = true;
  }
}

void Documents::send_open(const std::string& path, Document& document) {
  document.version = ++last_version_;
  document.is_examined = false;
  document.is_first_text = !knows_all_ && known_.find(path) == known_.end();
  note_known(path);
  if (alive_ && capabilities_.takes_documents) send_text(document);
}

void Documents::send_text(const Document& document) {
  notify_("textDocument/didOpen", identifier(document) + R"(,"languageId":)" + rpc::quoted(document.language) +
                                      R"(,"version":)" + std::to_string(document.version) + R"(,"text":)" +
                                      rpc::quoted(document.text.str()) + "}}");
}

// The whole text, which both kinds of synchronisation take. A server that takes no changes is shown it anew.
void Documents::send_change(const Document& document) {
  if (!alive_) return;
  if (capabilities_.sync == Capabilities::Sync::none) {
    if (!capabilities_.takes_documents) return;
    notify_("textDocument/didClose", identifier(document) + "}}");
    return send_text(document);
  }
  notify_("textDocument/didChange", identifier(document) + R"(,"version":)" + std::to_string(document.version) +
                                        R"(},"contentChanges":[{"text":)" + rpc::quoted(document.text.str()) + "}]}");
}

void Documents::close(Map::iterator document) {
  if (alive_ && capabilities_.takes_documents) {
    notify_("textDocument/didClose", identifier(document->second) + "}}");
  }
  documents_.erase(document);
}

// Until few enough are left, in number and in bytes. The one that was used last stays in any case.
void Documents::close_least_used() {
  for (;;) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    auto oldest = documents_.end();
    for (auto at = documents_.begin(); at != documents_.end(); ++at) {
      if (at->second.owner) continue;
      ++count;
      bytes += at->second.text.str().size();
      if (oldest == documents_.end() || at->second.used < oldest->second.used) oldest = at;
    }
    if (count <= 1 || (count <= most_from_disk && bytes <= most_bytes_)) return;
    close(oldest);
  }
}

bool Documents::has_room(std::size_t more) const {
  for (const auto& [path, document] : documents_) more += document.owner ? document.text.str().size() : 0;
  return more <= most_from_clients;
}

bool Documents::client_opens(std::uint64_t client, const std::string& path, std::string language, std::string text) {
  if (!has_room(text.size())) return false;
  const auto found = documents_.find(path);
  Document& document = found == documents_.end() ? make(path) : found->second;
  document.owner = client;
  if (!language.empty()) document.language = std::move(language);
  if (found != documents_.end()) {
    set_text(path, document, Text(std::move(text)));
    return true;
  }
  document.text = Text(std::move(text));
  send_open(path, document);
  return true;
}

bool Documents::client_changes(std::uint64_t client, const std::string& path, const std::vector<Change>& changes) {
  const auto found = documents_.find(path);
  if (found == documents_.end()) return false;
  Document& document = found->second;
  Text text = document.text;
  for (const Change& change : changes) {
    if (change.range) {
      const auto& [begin, end] = *change.range;
      text.replace(text.offset(begin, capabilities_.encoding), text.offset(end, capabilities_.encoding), change.text);
    } else {
      text = Text(change.text);
    }
  }
  if (!has_room(text.str().size())) return false;
  document.owner = client;
  set_text(path, document, std::move(text));
  return true;
}

// The text is what is on disk again; whoever asks next opens it anew.
void Documents::client_closes(const std::string& path) {
  const auto found = documents_.find(path);
  if (found != documents_.end() && found->second.owner) close(found);
}

bool Documents::has_clients() const {
  return std::ranges::any_of(documents_, [](const Map::value_type& entry) { return entry.second.owner.has_value(); });
}

Documents::Map Documents::take_clients() {
  Map taken;
  for (auto at = documents_.begin(); at != documents_.end();) {
    const auto here = at++;
    if (here->second.owner) taken.insert(documents_.extract(here));
  }
  return taken;
}

bool Documents::adopt(const std::string& path, Document document) {
  return client_opens(*document.owner, path, std::move(document.language), document.text.str());
}

void Documents::client_gone(std::uint64_t client) {
  for (auto at = documents_.begin(); at != documents_.end();) {
    const auto here = at++;
    if (here->second.owner == client) close(here);
  }
}

}  // namespace duet::bridge
