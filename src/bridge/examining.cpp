#include "bridge/examining.h"

#include <memory>
#include <utility>

namespace duet::bridge {
namespace {

struct Wait {
  std::uint64_t listener = 0;
  transport::Loop::Timer timer;
};

}  // namespace

bool is_examined(LanguageServer& server, const Document& document) {
  const Capabilities& capabilities = server.capabilities();
  return document.is_examined || capabilities.pulls_diagnostics || !capabilities.takes_documents ||
         !server.diagnostics().may_publish();
}

void when_examined(transport::Loop& loop, Inquiry& inquiry, const std::string& path, Inquiry::Step step) {
  const auto wait = std::make_shared<Wait>();
  const auto self = inquiry.shared_from_this();
  const auto end_wait = [server = &inquiry.server(), wait] {
    wait->timer.cancel();
    server->diagnostics().unlisten(wait->listener);
  };
  const auto go_on = [self, end_wait, step = std::move(step)] {
    end_wait();
    self->at_end = nullptr;
    self->run(step);
  };
  inquiry.at_end = end_wait;
  wait->timer = loop.after(time_to_examine, [self, path, go_on] {
    self->server().documents().note_examined(path);
    self->server().diagnostics().note_silence();
    go_on();
  });
  wait->listener = inquiry.server().diagnostics().listen(
      path, {.published = go_on, .down = [self](const Failure& why) { self->fail(why); }});
}

}  // namespace duet::bridge
