#include "bridge/diagnostics.h"

#include <exception>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "bridge/file_uri.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

// Those at the front that have room together.
boost::json::array first_of(const boost::json::array& items, std::size_t room) {
  boost::json::array kept;
  for (const boost::json::value& item : items) {
    const std::size_t size = rpc::to_text(item).size();
    if (size > room) break;
    room -= size;
    kept.push_back(item);
  }
  return kept;
}

}  // namespace

void Diagnostics::take(std::string_view params, base::TimePoint now) {
  if (!params.starts_with('{')) return;
  const boost::json::value tree = rpc::parse_value(params);
  const boost::json::object& object = tree.get_object();
  const boost::json::value* uri = object.if_contains("uri");
  const boost::json::value* items = object.if_contains("diagnostics");
  if (uri == nullptr || !uri->is_string() || items == nullptr || !items->is_array()) return;
  std::optional<std::string> path = path_of(uri->get_string());
  if (!path) return;
  path = documents_.meant_by(*path);
  const Document* document = documents_.find(*path);
  if (document == nullptr) return documents_.note_known(*path);
  drop_closed();
  Published& published = published_[*path];
  const boost::json::value* version = object.if_contains("version");
  published.version = version != nullptr && version->is_int64() ? std::optional(version->get_int64()) : std::nullopt;
  const bool has_room = params.size() <= most_bytes;
  published.items = has_room ? items->get_array() : first_of(items->get_array(), most_bytes);
  published.at = now;
  published.sent_version = document->version;
  has_published_ = true;
  documents_.note_examined(*path);

  std::vector<std::function<void()>> news;
  for (const auto& [number, listener] : listeners_) {
    if (listener.path == *path) news.push_back(listener.news.published);
  }
  for (const std::function<void()>& tell : news) tell();
}

void Diagnostics::server_down(const Failure& why) {
  published_.clear();
  const std::map<std::uint64_t, Listener> listeners = std::exchange(listeners_, {});
  for (const auto& [number, listener] : listeners) listener.news.down(why);
}

void Diagnostics::drop_closed() {
  std::erase_if(published_, [this](const auto& entry) { return documents_.find(entry.first) == nullptr; });
}

const Diagnostics::Published* Diagnostics::find(const std::string& path) const {
  const auto found = published_.find(path);
  return found == published_.end() ? nullptr : &found->second;
}

std::uint64_t Diagnostics::listen(std::string path, News news) {
  listeners_.emplace(++last_listener_, Listener{std::move(path), std::move(news)});
  return last_listener_;
}

bool is_for_text_of(const Diagnostics::Published& published, const Document& document) {
  return published.version ? *published.version == document.version : document.is_first_text;
}

}  // namespace duet::bridge
