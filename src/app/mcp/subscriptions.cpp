#include "app/mcp/subscriptions.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/mcp_tasks.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::uint64_t legacy = 0;
constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

std::string task_of(const std::string& name) { return is_handle(name) ? name.substr(0, name.rfind('-')) : name; }

bool is_about_output(std::string_view kind) { return kind == "taskOutput"; }
bool is_about_task(std::string_view kind) { return kind.starts_with("task"); }

// Whether what has happened may have changed a resource. Without a kind everything may have.
bool changes(const ResourceName& name, std::string_view kind, std::string_view task) {
  using Kind = ResourceName::Kind;
  if (kind.empty()) return true;
  switch (name.kind) {
    case Kind::status:
      return !is_about_output(kind);
    case Kind::tasks:
      return is_about_task(kind) && !is_about_output(kind);
    case Kind::task:
    case Kind::output:
      return is_about_task(kind) && (task.empty() || task_of(name.task) == task);
  }
  return false;
}

// Texts of a list, each once; none if it is something else, or too long.
std::optional<std::set<std::string>> texts_in(const object& wish, std::string_view name, std::size_t most) {
  std::set<std::string> texts;
  const value* const list = wish.if_contains(name);
  if (list == nullptr) return texts;
  if (!list->is_array() || list->get_array().size() > most) return std::nullopt;
  for (const value& text : list->get_array()) {
    if (!text.is_string()) return std::nullopt;
    texts.emplace(text.get_string());
  }
  return texts;
}

}  // namespace

Subscriptions::Subscriptions(transport::Loop& loop, TaskWatch& tasks, Calls calls)
    : loop_(loop), tasks_(tasks), calls_(std::move(calls)) {}

std::optional<rpc::Error> Subscriptions::subscribe(const std::shared_ptr<const Client>& client, const std::string& uri,
                                                   const ResourceName& name) {
  Listener& listener = listeners_[legacy];
  listener.client = client;
  if (listener.resources.size() >= most_names) return bad_params("no more than 256 subscriptions");
  listener.resources.emplace(uri, name);
  watch();
  return std::nullopt;
}

void Subscriptions::unsubscribe(const std::string& uri) {
  Listener& listener = listeners_[legacy];
  listener.resources.erase(uri);
  listener.changed.erase(uri);
  if (listener.resources.empty()) listeners_.erase(legacy);
  watch();
}

std::optional<rpc::Error> Subscriptions::listen(const std::shared_ptr<const Client>& client, const Envelope& envelope,
                                                const std::string& id, const std::shared_ptr<peer::Reply<>>& reply) {
  const value* const wish = envelope.params.if_contains("notifications");
  if (wish == nullptr || !wish->is_object()) return bad_params("notifications must be an object");
  const auto uris = texts_in(wish->get_object(), "resourceSubscriptions", most_names);
  const auto handles = texts_in(wish->get_object(), "taskIds", most_names);
  if (!uris || !handles) return bad_params("lists of up to 256 texts");
  const std::size_t listening = listeners_.size() - listeners_.count(legacy);
  if (listening >= most_listens) return bad_params("no more than 16 subscriptions/listen at once");
  if (!handles->empty() && !envelope.has_tasks) return missing_tasks_capability();
  const std::uint64_t number = ++last_;
  Listener& listener = listeners_[number];
  listener.client = client;
  listener.id = rpc::parse_value(id);
  listener.envelope = envelope;
  object honoured;
  array told_uris;
  for (const std::string& uri : *uris) {
    const std::optional<ResourceName> name = parse_resource(uri);
    if (!name) continue;
    listener.resources.emplace(uri, *name);
    told_uris.emplace_back(uri);
  }
  array told_handles;
  for (const std::string& handle : *handles) {
    if (!is_handle(handle)) continue;
    listener.handles.insert(handle);
    told_handles.emplace_back(handle);
  }
  if (!told_uris.empty()) honoured["resourceSubscriptions"] = std::move(told_uris);
  if (!told_handles.empty()) honoured["taskIds"] = std::move(told_handles);
  reply->on_abandoned([this, number] {
    listeners_.erase(number);
    watch();
  });
  listener.reply = reply;
  tell(listener, "notifications/subscriptions/acknowledged", {{"notifications", std::move(honoured)}});
  watch();
  return std::nullopt;
}

// What has to be heard of the daemon follows from who listens.
void Subscriptions::watch() {
  std::set<std::string> outputs;
  bool starts_daemon = false;
  for (const auto& [number, listener] : listeners_) {
    starts_daemon = starts_daemon || !listener.handles.empty();
    for (const auto& [uri, name] : listener.resources) {
      starts_daemon = starts_daemon || name.kind != ResourceName::Kind::status;
      if (name.kind == ResourceName::Kind::output) outputs.insert(task_of(name.task));
    }
  }
  if (listeners_.empty()) return tasks_.stop_listening();
  tasks_.set_outputs(std::move(outputs));
  tasks_.listen([this](std::string_view kind, std::string_view task) { happened(kind, task); }, starts_daemon);
}

void Subscriptions::happened(std::string_view kind, std::string_view task) {
  bool is_news = false;
  for (auto& [number, listener] : listeners_) {
    for (const auto& [uri, name] : listener.resources) {
      if (changes(name, kind, task)) is_news = listener.changed.insert(uri).second || is_news;
    }
    for (const std::string& handle : listener.handles) {
      const bool is_its = kind.empty() || (is_about_task(kind) && !is_about_output(kind) && task_of(handle) == task);
      if (is_its) is_news = listener.changed.insert(handle).second || is_news;
    }
  }
  if (is_news && !telling_) telling_ = loop_.after(together, [this] { tell(); });
}

void Subscriptions::tell() {
  for (auto& [number, listener] : listeners_) {
    for (const std::string& name : std::exchange(listener.changed, {})) {
      if (!listener.handles.contains(name)) {
        tell(listener, "notifications/resources/updated", {{"uri", name}});
        continue;
      }
      calls_.read_task(name, [this, number = number](object task) {
        const auto found = listeners_.find(number);
        if (found != listeners_.end()) tell(found->second, "notifications/tasks", std::move(task));
      });
    }
  }
}

void Subscriptions::tell(const Listener& listener, std::string_view method, object params) const {
  listener.client->tell(method, rpc::Json(with_id(listener, std::move(params))));
}

object Subscriptions::with_id(const Listener& listener, object params) const {
  if (!listener.id.is_null()) params["_meta"] = object{{subscription_key, listener.id}};
  return params;
}

void Subscriptions::end() {
  for (auto& [number, listener] : std::exchange(listeners_, {})) {
    if (!listener.reply) continue;
    const object meta{{subscription_key, listener.id}, {"io.modelcontextprotocol/serverInfo", server_info()}};
    listener.reply->ok(rpc::Json(object{{"resultType", "complete"}, {"_meta", meta}}));
  }
}

}  // namespace duet::app::mcp
