#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bridge/language_server.h"
#include "bridge/session.h"
#include "duet/base/log.h"

namespace duet::bridge {

/// Something that was asked and can be taken back.
class Asking {
 public:
  Asking() = default;
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;
  virtual ~Asking() = default;

  /// Nobody wants the answer any more.
  virtual void cancel() = 0;
};

/// Something asked of a language server, from the moment somebody asks until there is an answer: the wait for the
/// server, the calls that it takes, and the one answer at the end.
///
/// Steps are functions that run one after another. What a step throws is the answer; once there is one, or after
/// cancel(), no step runs any more. For the loop's thread only.
class Inquiry : public Asking, public std::enable_shared_from_this<Inquiry> {
 public:
  using Done = std::function<void(CallResult)>;
  using Step = std::function<void(Inquiry&)>;
  using ResultStep = std::function<void(Inquiry&, CallResult)>;

  Inquiry(transport::Loop& loop, std::shared_ptr<LanguageServer> server, base::Log& log, Done done);

  LanguageServer& server() { return *server_; }
  bool is_over() const { return !done_; }

  /// Runs the step when the server is ready; fails if it does not get so, or not in time.
  void when_ready(base::Duration patience, Step step);
  /// Asks the server; the step gets the result, or the error if there is one. One call at a time.
  void call(std::string_view method, std::string_view params, base::Duration patience, ResultStep step);
  /// Runs the step now, in the way of steps.
  void run(const Step& step);

  void answer(CallResult result);
  void fail(const Failure& why) { answer({.error = to_error(why)}); }
  void cancel() override;

  /// What is to be undone when it is over, e.g. a timer.
  std::function<void()> at_end;

 private:
  void undo();
  void end();

  transport::Loop& loop_;
  std::shared_ptr<LanguageServer> server_;
  base::Log& log_;
  Done done_;
  std::uint64_t call_ = 0;
  bool waiting_ = false;  // for the server to get ready
};

}  // namespace duet::bridge
