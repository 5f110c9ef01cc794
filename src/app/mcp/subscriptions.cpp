#include "app/mcp/subscriptions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/mcp_tasks.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::uint64_t legacy = 0;
constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

std::string subscription_member(const std::string& id) { return rpc::quoted(subscription_key) + ':' + id; }

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
                                                   const ResourceName& name, const std::function<void()>& done) {
  Listener& listener = listeners_[legacy];
  listener.client = client;
  const bool is_new = !listener.resources.contains(uri);
  if (is_new && listener.resources.size() >= most_names) return bad_params("no more than 256 subscriptions");
  listener.is_told = true;
  listener.resources.emplace(uri, name);
  const bool waits_for_daemon = name.kind != ResourceName::Kind::status;
  watch(waits_for_daemon ? done : [] {});
  if (!waits_for_daemon) done();
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
  if (id.size() > longest_id) return bad_params("the id, which is in all that is told, has at most 1,024 bytes");
  const std::size_t listening = listeners_.size() - listeners_.count(legacy);
  if (listening >= most_listens) return bad_params("no more than 16 subscriptions/listen at once");
  if (!handles->empty() && !envelope.has_tasks) return missing_tasks_capability();
  const std::uint64_t number = ++last_;
  Listener& listener = listeners_[number];
  listener.client = client;
  listener.id = id;
  for (const std::string& uri : *uris) {
    if (const std::optional<ResourceName> name = parse_resource(uri)) listener.resources.emplace(uri, *name);
  }
  std::ranges::copy_if(*handles, std::inserter(listener.handles, listener.handles.end()), is_handle);
  reply->on_abandoned([this, number] {
    listeners_.erase(number);
    watch();
  });
  listener.reply = reply;
  if (has_ended_) {
    end();
    return std::nullopt;
  }
  if (!starts_daemon(listener)) {
    acknowledge(listener);
    watch();
    return std::nullopt;
  }
  watch([this, number] { check(number); });
  return std::nullopt;
}

bool Subscriptions::starts_daemon(const Listener& listener) {
  const auto is_of_tasks = [](const auto& resource) { return resource.second.kind != ResourceName::Kind::status; };
  return !listener.handles.empty() || std::ranges::any_of(listener.resources, is_of_tasks);
}

// Tasks that there are not cannot be honoured.
void Subscriptions::check(std::uint64_t number) {
  const auto found = listeners_.find(number);
  if (found == listeners_.end() || found->second.is_told) return;
  std::set<std::string> names = found->second.handles;
  for (const auto& [uri, resource] : found->second.resources) {
    if (!resource.task.empty()) names.insert(resource.task);
  }
  if (names.empty()) return acknowledge(found->second);
  calls_.find(names, [this, number](const std::set<std::string>& known) {
    const auto waiting = listeners_.find(number);
    if (waiting == listeners_.end()) return;
    Listener& listener = waiting->second;
    std::erase_if(listener.handles, [&](const std::string& handle) { return !known.contains(handle); });
    std::erase_if(listener.resources, [&](const auto& resource) {
      return !resource.second.task.empty() && !known.contains(resource.second.task);
    });
    acknowledge(listener);
    watch();
  });
}

void Subscriptions::acknowledge(Listener& listener) {
  object honoured;
  array uris;
  for (const auto& [uri, resource] : listener.resources) uris.emplace_back(uri);
  if (!uris.empty()) honoured["resourceSubscriptions"] = std::move(uris);
  const array handles(listener.handles.begin(), listener.handles.end());
  if (!handles.empty()) honoured["taskIds"] = handles;
  listener.is_told = true;
  notify(listener, "notifications/subscriptions/acknowledged", {{"notifications", std::move(honoured)}});
  if (!listener.changed.empty()) tell_later();
}

// What has to be heard of the daemon follows from who listens.
void Subscriptions::watch(std::function<void()> live) {
  std::set<std::string> outputs;
  bool starts = false;
  for (const auto& [number, listener] : listeners_) {
    starts = starts || starts_daemon(listener);
    for (const auto& [uri, name] : listener.resources) {
      if (name.kind == ResourceName::Kind::output) outputs.insert(task_of(name.task));
    }
  }
  if (listeners_.empty()) return tasks_.stop_listening();
  tasks_.set_outputs(std::move(outputs));
  tasks_.listen([this](std::string_view kind, std::string_view task) { happened(kind, task); }, starts,
                std::move(live));
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
  if (is_news) tell_later();
}

void Subscriptions::tell_later() {
  if (!telling_) telling_ = loop_.after(together, [this] { tell(); });
}

void Subscriptions::tell() {
  for (auto& [number, listener] : listeners_) {
    if (!listener.is_told) continue;
    for (const std::string& name : std::exchange(listener.changed, {})) {
      if (listener.resources.contains(name)) notify(listener, "notifications/resources/updated", {{"uri", name}});
      if (!listener.handles.contains(name)) continue;
      calls_.read_task(name, [this, number = number](const object& task) {
        const auto found = listeners_.find(number);
        if (found != listeners_.end()) notify(found->second, "notifications/tasks", task);
      });
    }
  }
}

// The id goes back as it is spelt.
void Subscriptions::notify(const Listener& listener, std::string_view method, const object& params) const {
  std::string text = '{' + members_of(params);
  if (!listener.id.empty()) text += R"(,"_meta":{)" + subscription_member(listener.id) + '}';
  listener.client->tell(method, rpc::Json::trusted(text + '}'));
}

void Subscriptions::end() {
  has_ended_ = true;
  for (auto& [number, listener] : std::exchange(listeners_, {})) {
    if (listener.reply) finish(listener);
  }
}

// Of tasks that were not found yet nothing is honoured.
void Subscriptions::finish(Listener& listener) {
  if (!listener.is_told) {
    listener.handles.clear();
    std::erase_if(listener.resources, [](const auto& resource) { return !resource.second.task.empty(); });
    acknowledge(listener);
  }
  const std::string meta =
      subscription_member(listener.id) + ',' + members_of({{"io.modelcontextprotocol/serverInfo", server_info()}});
  listener.reply->ok(rpc::Json::trusted(R"({"resultType":"complete","_meta":{)" + meta + "}}"));
}

}  // namespace duet::app::mcp
