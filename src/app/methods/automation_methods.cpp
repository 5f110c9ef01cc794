#include "app/methods/automation_methods.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace duet::app {
namespace {

using automation::Engine;
using peer::Answer;
using peer::Reply;
using peer::Request;

// std::function must be copyable, a Reply is not.
Engine::Done answering(Reply reply, std::string result) {
  auto shared = std::make_shared<Reply>(std::move(reply));
  return [shared, result = std::move(result)](const std::optional<rpc::Error>& error) {
    error ? shared->fail(*error) : shared->ok(Answer::view(result));
  };
}

peer::Method status(Engine& engine) {
  return {.name = "automation.status",
          .summary = "Tells the rules and what they did last, including what was held back and why",
          .params = {},
          .handler = [&engine](const Request&) { return Answer(engine.status()); },
          .late_handler = {}};
}

peer::Method approve(Engine& engine) {
  return {.name = "automation.approve",
          .summary = "Lets a firing go that waits for approval",
          .params = {{.name = "id", .type = rpc::Type::text, .summary = "Of the firing, as in automation.status"}},
          .handler = {},
          .late_handler = [&engine](const Request& request, Reply reply) {
            engine.approve(*request.params.text("id"), answering(std::move(reply), R"({"approved":true})"));
          }};
}

peer::Method switching(Engine& engine, bool enabled) {
  return {
      .name = enabled ? "automation.enable" : "automation.disable",
      .summary = std::string(enabled ? "Lets rules fire again" : "Keeps rules from firing") + ", also after a restart",
      .params = {{.name = "ruleId",
                  .type = rpc::Type::text,
                  .required = false,
                  .summary = "One rule; without it all of automation"}},
      .handler = {},
      .late_handler = [&engine, enabled](const Request& request, Reply reply) {
        const std::optional<std::string> rule = request.params.text("ruleId");
        engine.enable(rule, enabled,
                      answering(std::move(reply), enabled ? R"({"enabled":true})" : R"({"enabled":false})"));
      }};
}

}  // namespace

void add_automation_methods(peer::Methods& methods, Engine& engine) {
  methods.add(status(engine));
  methods.add(approve(engine));
  methods.add(switching(engine, true));
  methods.add(switching(engine, false));
}

}  // namespace duet::app
