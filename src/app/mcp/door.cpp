#include "app/mcp/door.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/arguments.h"
#include "app/mcp/resources.h"
#include "app/mcp/task_requests.h"
#include "app/mcp/tools.h"
#include "app/settings/offered_agents.h"
#include "app/words/near_miss.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::int64_t kept_for = 3'600'000;  // milliseconds that a client may keep a list
constexpr int resource_not_found = -32002;    // of the legacy era

const value* text_param(const object& params, std::string_view name) {
  const value* const found = params.if_contains(name);
  return found != nullptr && found->is_string() ? found : nullptr;
}

}  // namespace

// Which era knows a method, and from the newest legacy revision only or not. Tasks are there if task_run is. What is
// remembered for a client needs one that stays.
struct Door::Entry {
  std::string_view method;
  bool is_modern;
  bool is_legacy;
  bool is_about_tasks;
  Handler handler;
  bool needs_session = false;
};

const Door::Entry Door::entries[] = {
    {"initialize", false, true, false, &Door::initialize},
    {"ping", false, true, false, &Door::ping},
    {"server/discover", true, false, false, &Door::discover},
    {"tools/list", true, true, false, &Door::list_tools},
    {"tools/call", true, true, false, &Door::call_tool},
    {"resources/list", true, true, false, &Door::list_resources},
    {"resources/templates/list", true, true, false, &Door::list_templates},
    {"resources/read", true, true, false, &Door::read_resource},
    {"resources/subscribe", false, true, false, &Door::subscribe, true},
    {"resources/unsubscribe", false, true, false, &Door::unsubscribe, true},
    {"subscriptions/listen", true, false, false, &Door::listen},
    {"tasks/get", true, true, true, &Door::get_task},
    {"tasks/result", false, true, true, &Door::task_result},
    {"tasks/update", true, false, true, &Door::update_task},
    {"tasks/cancel", true, true, true, &Door::cancel_task},
};

Door::Door(transport::Loop& loop, base::Log& log, Options options)
    : loop_(loop),
      options_(std::move(options)),
      tools_(options_.tools),
      scope_(options_.scope),
      desk_(loop, log, options_.daemon),
      tasks_([this](EventFeed::Events events) {
        return std::make_unique<EventFeed>(loop_, desk_.link(scope_.home().value_or("/")), std::move(events));
      }),
      services_{.loop = loop, .log = log, .desk = desk_, .scope = scope_, .tools = tools_, .tasks = tasks_},
      subscriptions_(loop, tasks_,
                     {.find = [this](const auto& names, auto then) { find_tasks(services_, names, std::move(then)); },
                      .read_task = [this](const std::string& handle,
                                          std::function<void(object)> then) { tell_task(handle, std::move(then)); }}) {
  services_.agents = options_.agents;
  services_.agents_of_settings = [] { return agents_offered_by(settings_places()); };
  methods_.add_fallback([this](const rpc::Json&, const peer::Request& request, peer::Reply<> reply) {
    handle(request, std::move(reply));
  });
}

Door::~Door() = default;

void Door::attach(std::uint64_t number, Client client) {
  clients_[number] = std::make_shared<Client>(std::move(client));
}

void Door::begin_end() {
  services_.is_ending = true;
  subscriptions_.end();
  const std::vector<Call*> calls = services_.calls;
  for (Call* const call : calls) {
    const bool is_there = std::ranges::find(services_.calls, call) != services_.calls.end();
    if (is_there) call->drop_wait();
  }
}

void Door::handle(const peer::Request& asked, peer::Reply<> reply) {
  const std::shared_ptr<Client>& client = clients_.at(asked.conversation.peer().connection);
  tl::expected<Envelope, rpc::Error> envelope =
      read_envelope(asked.method, asked.params.text(), client->revision, client->fields ? &*client->fields : nullptr);
  if (!envelope) return reply.fail(envelope.error());
#ifdef DUET_TEST_METHODS
  if (fixtures_.take(asked.method, client, *envelope, reply)) return;
#endif
  const Entry* const entry = find(asked.method, *envelope, *client);
  if (entry == nullptr) return reply.fail(rpc::method_not_found());
  (this->*entry->handler)({client, asked.conversation, std::move(*envelope), std::string(asked.id), std::move(reply)});
}

const Door::Entry* Door::find(std::string_view method, const Envelope& envelope, const Client& client) const {
  const auto* const found = std::ranges::find(entries, method, &Entry::method);
  if (found == std::end(entries) || !(envelope.is_modern ? found->is_modern : found->is_legacy)) return nullptr;
  if (found->needs_session && !client.has_session()) return nullptr;
  const bool has_tasks =
      tools_.offers(Tool::Name::task_run) && (envelope.is_modern || envelope.revision == newest_legacy);
  return found->is_about_tasks && !has_tasks ? nullptr : found;
}

void Door::run(Request& request, Call::Kind kind, const std::function<void(const std::shared_ptr<Call>&)>& answer,
               bool unlimited) {
  const bool is_busy = desk_.is_full() || services_.calls.size() >= most_calls;
  const auto call =
      std::make_shared<Call>(services_, kind, request.client, std::move(request.envelope), std::move(request.reply));
  if (is_busy) {
    return call->fail(ToolError{.code = "busy",
                                .problem = "too many calls wait already",
                                .remedy = "the same call when some of them are answered"});
  }
  call->begin(unlimited);
  call->guard([&] { answer(call); });
}

object Door::capabilities(const Envelope& envelope, const Client& client) const {
  object out{{"tools", object()}, {"resources", object()}};
  const bool can_subscribe = envelope.is_modern || client.has_session();
  if (can_subscribe) out["resources"].as_object()["subscribe"] = true;
  if (!tools_.offers(Tool::Name::task_run)) return out;
  if (envelope.is_modern) {
    out["extensions"] = object{{tasks_extension, object()}};
  } else if (envelope.revision == newest_legacy) {
    out["tasks"] = object{{"cancel", object()}, {"requests", {{"tools", {{"call", object()}}}}}};
  }
  return out;
}

void Door::initialize(Request request) {
  if (request.client->revision && request.client->has_session())
    return request.reply.fail(rpc::invalid_request("malformed-envelope", "initialize comes once"));
  const value* const asked = text_param(request.envelope.params, "protocolVersion");
  if (asked == nullptr) return request.reply.fail(bad_params("protocolVersion must be a string"));
  const std::string_view revision = agreed_revision(asked->get_string());
  request.client->revision = revision;
  request.envelope.revision = revision;
  request.conversation.allow_batches(revision == batch_revision);
  const object result{{"protocolVersion", revision},
                      {"capabilities", capabilities(request.envelope, *request.client)},
                      {"serverInfo", server_info()},
                      {"instructions", instructions()}};
  request.reply.ok(rpc::Json(result));
}

void Door::ping(Request request) { request.reply.ok(rpc::Json::view("{}")); }

void Door::discover(Request request) {
  const object members{{"supportedVersions", boost::json::array(revisions.begin(), revisions.end())},
                       {"capabilities", capabilities(request.envelope, *request.client)},
                       {"instructions", instructions()}};
  request.reply.ok(cacheable_text(request.envelope, members_of(members), kept_for));
}

// The lists have one page, so that no cursor can be right.
bool Door::refuse_cursor(Request& request) {
  if (!request.envelope.params.contains("cursor")) return false;
  request.reply.fail(bad_params("there is no such cursor; the list has one page"));
  return true;
}

void Door::list_tools(Request request) {
  if (refuse_cursor(request)) return;
  const bool with_execution = request.envelope.revision == newest_legacy && !request.envelope.is_modern;
  request.reply.ok(cacheable_text(request.envelope, "\"tools\":" + tools_.text(with_execution), kept_for));
}

void Door::call_tool(Request request) {
  const object& params = request.envelope.params;
  const value* const name = text_param(params, "name");
  if (name == nullptr) return request.reply.fail(bad_params("name must be a string"));
  const Tool* const tool = tools_.find(name->get_string());
  if (tool == nullptr) {
    const std::string_view near = near_miss(name->get_string(), tools_.names());
    // Without its name: this is logged, and who mixes up his params may have put anything there.
    const std::string hint = near.empty() ? "" : "; did you mean " + std::string(near) + "?";
    return request.reply.fail(bad_params("there is no such tool" + hint));
  }
  const value* const given = params.if_contains("arguments");
  if (given != nullptr && !given->is_object()) return request.reply.fail(bad_params("arguments must be an object"));
  const bool cannot_be_task =
      request.envelope.has_tasks && !request.envelope.is_modern && tool->id != Tool::Name::task_run;
  if (cannot_be_task) return request.reply.fail(rpc::method_not_found());
  const tl::expected<Arguments, ToolError> arguments =
      Arguments::read(*tool, tools_.input_schema(*tool), given != nullptr ? given->get_object() : object());
  run(request, Call::Kind::tool, [&](const std::shared_ptr<Call>& call) {
    if (!arguments) return call->fail(arguments.error());
    call->set_bound(arguments->max_bytes());
    run_tool(*tool, call, *arguments);
  });
}

void Door::list_resources(Request request) {
  if (refuse_cursor(request)) return;
  request.reply.ok(cacheable_text(request.envelope, resource_list(), kept_for));
}

void Door::list_templates(Request request) {
  if (refuse_cursor(request)) return;
  request.reply.ok(cacheable_text(request.envelope, template_list(), kept_for));
}

rpc::Error Door::unknown_resource(const Envelope& envelope, std::string_view uri) {
  const object data{{"uri", rpc::first_characters(uri, 200)}};
  return {envelope.is_modern ? rpc::code::invalid_params : resource_not_found, "Resource not found", rpc::Json(data)};
}

void Door::read_resource(Request request) {
  const value* const given = text_param(request.envelope.params, "uri");
  if (given == nullptr) return request.reply.fail(bad_params("uri must be a string"));
  const std::string uri(given->get_string());
  const std::optional<ResourceName> name = parse_resource(uri);
  if (!name) return request.reply.fail(unknown_resource(request.envelope, uri));
  const rpc::Error unknown = unknown_resource(request.envelope, uri);
  run(request, Call::Kind::request, [&](const auto& call) { answer_resource(call, uri, *name, unknown); });
}

void Door::subscribe(Request request) {
  const value* const given = text_param(request.envelope.params, "uri");
  if (given == nullptr) return request.reply.fail(bad_params("uri must be a string"));
  const std::string uri(given->get_string());
  const std::optional<ResourceName> name = parse_resource(uri);
  if (!name) return request.reply.fail(unknown_resource(request.envelope, uri));
  if (!scope_.home()) return request.reply.fail(bad_params("there is no project here"));
  const rpc::Error unknown = unknown_resource(request.envelope, uri);
  run(request, Call::Kind::request, [&](const auto& call) {
    check_resource(call, *name, unknown, [this, call, uri, name, client = request.client] {
      const auto done = [call] { call->answer(rpc::Json::view("{}")); };
      if (const auto refusal = subscriptions_.subscribe(client, uri, *name, done)) call->fail(*refusal);
    });
  });
}

void Door::unsubscribe(Request request) {
  const value* const given = text_param(request.envelope.params, "uri");
  if (given == nullptr) return request.reply.fail(bad_params("uri must be a string"));
  subscriptions_.unsubscribe(std::string(given->get_string()));
  request.reply.ok(rpc::Json::view("{}"));
}

void Door::listen(Request request) {
  if (!scope_.home()) return request.reply.fail(bad_params("there is no project here"));
  if (!request.client->notify) return request.reply.fail(bad_params("Accept has no text/event-stream to tell it on"));
  const auto reply = peer::shared(std::move(request.reply));
  const auto refusal = subscriptions_.listen(request.client, request.envelope, request.id, reply);
  if (refusal) reply->fail(*refusal);
}

void Door::get_task(Request request) {
  const auto handle = handle_in(request.envelope);
  if (!handle) return request.reply.fail(handle.error());
  run(request, Call::Kind::request, [&](const auto& call) { answer_task(call, *handle); });
}

void Door::task_result(Request request) {
  const auto handle = handle_in(request.envelope);
  if (!handle) return request.reply.fail(handle.error());
  run(
      request, Call::Kind::request, [&](const auto& call) { answer_task_result(call, *handle); }, true);
}

void Door::update_task(Request request) {
  const auto handle = handle_in(request.envelope);
  if (!handle) return request.reply.fail(handle.error());
  run(request, Call::Kind::request, [&](const auto& call) { answer_task_update(call, *handle); });
}

void Door::cancel_task(Request request) {
  const auto handle = handle_in(request.envelope);
  if (!handle) return request.reply.fail(handle.error());
  run(request, Call::Kind::request, [&](const auto& call) { answer_task_cancel(call, *handle); });
}

void Door::tell_task(const std::string& handle, std::function<void(object)> then) {
  read_given_task(services_, handle, std::move(then));
}

}  // namespace duet::app::mcp
