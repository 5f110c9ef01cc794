#include "bridge/settling.h"

#include <memory>
#include <utility>

namespace duet::bridge {
namespace {

struct Wait {
  std::uint64_t listener = 0;
  transport::Loop::Timer timer;
};

bool need_not_wait(LanguageServer& server, const std::string& path) {
  const Document* document = server.documents().find(path);
  const Capabilities& capabilities = server.capabilities();
  return document == nullptr || document->is_settled || capabilities.pulls_diagnostics ||
         !capabilities.takes_documents || !server.diagnostics().may_publish();
}

}  // namespace

void when_settled(transport::Loop& loop, Inquiry& inquiry, const std::string& path, Inquiry::Step step) {
  if (need_not_wait(inquiry.server(), path)) return inquiry.run(step);
  const auto wait = std::make_shared<Wait>();
  const auto self = inquiry.shared_from_this();
  const auto end_wait = [&loop, server = &inquiry.server(), wait] {
    loop.cancel(wait->timer);
    server->diagnostics().unlisten(wait->listener);
  };
  const auto go_on = [self, end_wait, step = std::move(step)] {
    end_wait();
    self->at_end = nullptr;
    self->run(step);
  };
  inquiry.at_end = end_wait;
  wait->timer = loop.after(time_to_settle, [self, path, go_on] {
    self->server().documents().note_settled(path);
    self->server().diagnostics().note_silence();
    go_on();
  });
  wait->listener = inquiry.server().diagnostics().listen(
      path, {.published = go_on, .down = [self](const Failure& why) { self->fail(why); }});
}

}  // namespace duet::bridge
