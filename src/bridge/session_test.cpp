#include "bridge/session.h"

#include <signal.h>

#include <memory>
#include <optional>

#include "bridge/fake_server_test.h"

namespace duet::bridge {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Test;

class SessionTest : public FakeServerTest {
 protected:
  explicit SessionTest(base::Clock& clock = base::system_clock()) : FakeServerTest(clock) {}

  void start(const Definition& definition) {
    session = std::make_unique<Session>(
        loop, log.log(), definition, folder.path(), settings,
        Session::Events{
            .ready = [this] { ready = true; },
            .notification = [this](std::string_view method, std::string_view) { notifications.emplace_back(method); },
            .down = [this](const Failure& why) { failure = why; },
            .gone = [this] { gone = true; }});
  }

  void start_ready(std::vector<std::string> options = {}) {
    start(fake(std::move(options)));
    ASSERT_TRUE(turn_until([this] { return ready || failure; }));
    ASSERT_TRUE(ready) << failure->message;
  }

  Failure start_failing(const Definition& definition) {
    start(definition);
    EXPECT_TRUE(turn_until([this] { return failure.has_value(); }));
    EXPECT_FALSE(ready);
    return failure.value_or(Failure());
  }

  std::uint64_t call(std::string_view method, std::string_view params, std::optional<CallResult>& result,
                     base::Duration patience = seconds(30)) {
    return session->call(method, params, patience, [&result](CallResult got) {
      EXPECT_FALSE(result) << "a second outcome";
      result = std::move(got);
    });
  }

  CallResult ask(std::string_view method, std::string_view params = {}, base::Duration patience = seconds(30)) {
    std::optional<CallResult> result;
    call(method, params, result, patience);
    EXPECT_FALSE(result) << "inside call()";
    EXPECT_TRUE(turn_until([&] { return result.has_value(); }));
    return result.value_or(CallResult());
  }

  std::string cause_of(const CallResult& result) {
    if (!result.error || result.error->data().empty()) return "none";
    const boost::json::value data = rpc::parse_value(result.error->data());
    const boost::json::value* cause = data.as_object().if_contains("cause");
    return cause != nullptr ? std::string(cause->as_string()) : "none";
  }

  /// The guard tells the pid, the server itself that it is ready: either may be heard first.
  void signal_server(int signal) {
    ASSERT_TRUE(turn_until([this] { return session->pid() != 0; }));
    kill(session->pid(), signal);
  }

  bool ready = false;
  bool gone = false;
  std::optional<Failure> failure;
  std::vector<std::string> notifications;
  std::unique_ptr<Session> session;
};

struct StandingClock {
  base::VirtualClock clock;
};

/// For the session, time passes only when a test says so: however slow the machine is, it is never too late.
class TimedSessionTest : protected StandingClock, public SessionTest {
 protected:
  TimedSessionTest() : SessionTest(clock) {}

  void pass(base::Duration time) {
    clock.advance(time);
    loop.turn(base::Duration::zero());
  }
};

TEST_F(SessionTest, ShakesHandsBeforeAnythingElse) {
  start_ready();
  EXPECT_EQ(session->capabilities().server_name, "fake");
  EXPECT_EQ(ask("fake/echo", "{}").text, "{}");
  EXPECT_EQ(sent_methods(), (std::vector<std::string>{"initialize", "initialized", "fake/echo"}));
  const boost::json::object params = sent()[0].at("params").as_object();
  EXPECT_EQ(params.at("processId").as_int64(), getpid());
  EXPECT_EQ(params.at("clientInfo").at("version"), "1.2.3");
}

TEST_F(SessionTest, PassesBodiesThroughAsTheyAreSpelt) {
  start_ready();
  const std::string odd = R"({"z":1.50,"a":[1e2,-0,12345678901234567890123],"b":"\u0041\/ä","z":  null})";
  EXPECT_EQ(ask("fake/echo", odd).text, odd);
}

TEST_F(SessionTest, PassesErrorsThrough) {
  start_ready();
  const CallResult result = ask("fake/refuse");
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code(), -32099);
  EXPECT_EQ(result.error->message(), "no");
  EXPECT_EQ(result.error->data(), R"({"why": 1.5})");
}

TEST_F(SessionTest, NamesWhyAServerCannotStart) {
  Definition definition = fake();
  definition.command = {"no-such-program-at-all"};
  EXPECT_EQ(start_failing(definition).cause, Cause::not_found);
  EXPECT_TRUE(turn_until([this] { return gone; }));
}

TEST_F(SessionTest, NamesAProgramThatCannotRun) {
  Definition definition = fake();
  definition.command = {write("no-program", "text")};
  EXPECT_EQ(start_failing(definition).cause, Cause::exec_failed);
}

TEST_F(SessionTest, NamesAServerThatEndsBeforeItsAnswer) {
  const Failure why = start_failing(fake({"--crash-at", "initialize", "--complain", "out of ideas", "--banner", "hi"}));
  EXPECT_EQ(why.cause, Cause::exited_before_initialize);
  EXPECT_EQ(why.status->code, 7);
  EXPECT_EQ(why.error_output, "out of ideas\n");
  EXPECT_EQ(why.noise, "hi\n");
}

TEST_F(SessionTest, NamesAServerThatNeverAnswers) {
  settings.patience.initialize = milliseconds(200);
  EXPECT_EQ(start_failing(fake({"--ignore", "initialize"})).cause, Cause::handshake_timeout);
  EXPECT_TRUE(turn_until([this] { return gone; }));
  EXPECT_TRUE(all_are_gone());
}

TEST_F(SessionTest, NamesAProgramThatIsNoServer) {
  Definition definition = fake();
  definition.command = {"yes", "no"};
  const Failure why = start_failing(definition);
  EXPECT_EQ(why.cause, Cause::protocol_noise);
  EXPECT_EQ(why.noise.substr(0, 6), "no\nno\n");
  EXPECT_EQ(why.noise.size(), 300U);
}

TEST_F(SessionTest, NamesAProgramThatEchoes) {
  Definition definition = fake();
  definition.command = {"cat"};
  EXPECT_EQ(start_failing(definition).cause, Cause::protocol_noise);
}

TEST_F(SessionTest, SkipsTextBetweenMessages) {
  start_ready({"--banner", "Welcome!\n{not json", "--noise", "debug: Content-Length: 5"});
  EXPECT_EQ(ask("fake/print", R"({"text":"no newline"})").text, "null");
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
}

TEST_F(SessionTest, DrainsStderrForEver) {
  start_ready({"--stderr", "100000000", "--complain", "first"});
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
}

TEST_F(SessionTest, TakesTheFirstOfTwoAnswers) {
  start_ready({"--twice"});
  EXPECT_EQ(ask("fake/large", R"({"size":3})").text, R"("yyy")");
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
}

TEST_F(SessionTest, RoutesAnswersThatComeInAnotherOrder) {
  start_ready();
  std::vector<std::optional<CallResult>> results(20);
  for (std::size_t i = 0; i < results.size(); ++i) call("fake/hold", "[" + std::to_string(i) + "]", results[i]);
  ask("fake/release");
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_TRUE(results[i]);
    EXPECT_EQ(results[i]->text, "[" + std::to_string(i) + "]");
  }
}

TEST_F(SessionTest, ReadsAnAnswerThatComesByteByByte) {
  start_ready();
  EXPECT_EQ(ask("fake/trickle", R"({"size":200000})").text.size(), 200002U);
}

TEST_F(SessionTest, ReadsLargeAnswersUpToTheBound) {
  Definition definition = fake();
  definition.max_body = 1 << 20;
  start(definition);
  ASSERT_TRUE(turn_until([this] { return ready; }));
  EXPECT_EQ(ask("fake/large", R"({"size":1000000})").text.size(), 1000002U);
  EXPECT_EQ(cause_of(ask("fake/large", R"({"size":1100000})")), "protocol-noise");
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
}

TEST_F(SessionTest, FailsTheCallWhoseAnswerHasAWrongLength) {
  start_ready();
  std::optional<CallResult> other;
  call("fake/hold", "[1]", other);
  EXPECT_EQ(cause_of(ask("fake/wrong_length", R"({"delta":-5})")), "protocol-noise");
  EXPECT_EQ(cause_of(ask("fake/wrong_length", R"({"delta":5,"then":true})")), "protocol-noise");
  EXPECT_FALSE(other);
  ask("fake/release");
  EXPECT_EQ(other->text, "[1]");
}

TEST_F(SessionTest, FailsTheCallWhoseAnswerIsNone) {
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/body", R"({"text":"{\"jsonrpc\":\"2.0\",\"id\":ID}"})")), "protocol-noise");
  const CallResult batch = ask("fake/body", R"({"text":"[{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":1}]"})", seconds(3));
  EXPECT_EQ(cause_of(batch), "protocol-noise");
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
  for (const std::string& method : sent_methods()) EXPECT_NE(method, "(answer)");
}

TEST_F(SessionTest, BlamesTheProtocolForAnAnswerThatIsNeverComplete) {
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/wrong_length", R"({"delta":5})", seconds(3))), "protocol-noise");
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
}

TEST_F(SessionTest, TellsATimeoutAndCancelsTheCall) {
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/never", {}, milliseconds(100))), "timeout");
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
  EXPECT_EQ(sent_methods(),
            (std::vector<std::string>{"initialize", "initialized", "fake/never", "$/cancelRequest", "fake/echo"}));
  EXPECT_EQ(sent()[3].at("params").at("id"), sent()[2].at("id"));
}

TEST_F(SessionTest, DropsALateAnswer) {
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/hold", "[1]", milliseconds(50))), "timeout");
  EXPECT_EQ(ask("fake/release").text, "null");
}

TEST_F(SessionTest, NeverSendsACallThatWasCancelledWhileItWaited) {
  start_ready();
  std::optional<CallResult> cancelled;
  session->cancel(call("fake/echo", "[1]", cancelled));
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
  EXPECT_FALSE(cancelled);
  EXPECT_EQ(sent_methods(), (std::vector<std::string>{"initialize", "initialized", "fake/echo"}));
}

TEST_F(SessionTest, TellsTheServerOfACancelInOrder) {
  start_ready();
  std::optional<CallResult> cancelled;
  const std::uint64_t id = call("fake/hold", "[1]", cancelled);
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
  session->cancel(id);
  ask("fake/release");
  EXPECT_FALSE(cancelled);
  EXPECT_EQ(sent_methods()[4], "$/cancelRequest");
}

TEST_F(SessionTest, FailsEverythingAtOnceWhenTheServerDies) {
  start_ready();
  std::optional<CallResult> held;
  call("fake/hold", "[1]", held);
  EXPECT_EQ(cause_of(ask("fake/crash")), "crashed");
  ASSERT_TRUE(held);
  EXPECT_EQ(cause_of(*held), "crashed");
  EXPECT_EQ(failure->status->code, 7);
  EXPECT_EQ(session->in_flight_at_end().size(), 2U);
  EXPECT_TRUE(turn_until([this] { return gone; }));
}

TEST_F(SessionTest, NamesTheSignalThatEndedAServer) {
  start_ready();
  std::optional<CallResult> held;
  call("fake/hold", "[1]", held);
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
  signal_server(SIGKILL);
  ASSERT_TRUE(turn_until([&] { return held.has_value(); }));
  EXPECT_NE(held->error->data().find("SIGKILL"), std::string::npos);
}

TEST_F(SessionTest, GivesUpOnAServerThatClosedItsStdout) {
  settings.patience.closing = milliseconds(100);
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/close")), "crashed");
  EXPECT_TRUE(turn_until([this] { return gone; }));
}

TEST_F(TimedSessionTest, AsksAGuardThatIsSlowHowTheServerEnded) {
  settings.patience.closing = seconds(1);
  start_ready();
  ASSERT_TRUE(turn_until([this] { return session->pid() != 0; }));
  kill(session->guard_pid(), SIGSTOP);
  std::optional<CallResult> result;
  call("fake/crash", {}, result);
  ASSERT_TRUE(turn_until([this] { return process::read_process(session->pid())->is_zombie(); }));
  for (int i = 0; i < 2; ++i) pass(settings.patience.closing);  // the first may be where the end of its streams is seen
  EXPECT_FALSE(failure);
  kill(session->guard_pid(), SIGCONT);
  ASSERT_TRUE(turn_until([this] { return gone; }));
  EXPECT_EQ(cause_of(result.value()), "crashed");
  ASSERT_TRUE(failure && failure->status);
  EXPECT_EQ(failure->status->code, 7);
}

TEST_F(SessionTest, GivesUpOnASilentServerWithWorkToDo) {
  settings.patience.silence = milliseconds(300);
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/never", {}, milliseconds(100))), "timeout");
  EXPECT_TRUE(turn_until([this] { return failure.has_value(); }));
  EXPECT_EQ(failure->cause, Cause::crashed);
}

TEST_F(TimedSessionTest, CountsSilenceFromTheLastWordOrTheCallThatFollowedIt) {
  start_ready();
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
  pass(seconds(50));
  std::optional<CallResult> never;
  call("fake/never", {}, never, seconds(100));
  pass(seconds(59));
  EXPECT_FALSE(failure);
  pass(seconds(1));
  ASSERT_TRUE(turn_until([&] { return never.has_value(); }));
  EXPECT_EQ(cause_of(*never), "crashed");
}

TEST_F(TimedSessionTest, LeavesAnIdleServerAlone) {
  start_ready();
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
  pass(std::chrono::hours(1));
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
  EXPECT_FALSE(failure);
}

TEST_F(SessionTest, AnswersEverythingTheServerAsks) {
  start_ready();
  const auto asked = [&](const std::string& method, const std::string& params) {
    return ask("fake/ask", R"({"method":")" + method + R"(","params":)" + params + "}").text;
  };
  EXPECT_EQ(asked("workspace/configuration", R"({"items":[{},{"section":"a"},{}]})"),
            R"({"result": [null, null, null]})");
  EXPECT_EQ(asked("workspace/configuration", "null"), R"({"result": []})");
  for (const char* method :
       {"client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create",
        "window/showMessageRequest", "workspace/semanticTokens/refresh", "workspace/diagnostic/refresh"}) {
    EXPECT_EQ(asked(method, "{}"), R"({"result": null})") << method;
  }
  EXPECT_NE(asked("workspace/workspaceFolders", "null").find(R"("uri": "file://)"), std::string::npos);
  EXPECT_NE(asked("workspace/applyEdit", "{}").find(R"("applied": false)"), std::string::npos);
  EXPECT_EQ(asked("window/showDocument", "{}"), R"({"result": {"success": false}})");
  EXPECT_NE(asked("no/such", "{}").find("-32601"), std::string::npos);
}

TEST_F(SessionTest, StopsInOrder) {
  start_ready();
  std::optional<CallResult> held;
  call("fake/hold", "[1]", held);
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
  session->stop();
  ASSERT_TRUE(held);
  EXPECT_EQ(cause_of(*held), "stopped");
  ASSERT_TRUE(turn_until([this] { return gone; }));
  EXPECT_FALSE(failure);
  const std::vector<std::string> methods = sent_methods();
  EXPECT_EQ(methods[methods.size() - 2], "shutdown");
  EXPECT_EQ(methods.back(), "exit");
  EXPECT_TRUE(all_are_gone());
}

TEST_F(SessionTest, ForcesAServerThatDoesNotStop) {
  settings.patience.shutdown = milliseconds(100);
  start_ready({"--ignore", "shutdown", "--ignore", "exit", "--ignore", "TERM", "--grandchild"});
  session->stop();
  ASSERT_TRUE(turn_until([this] { return gone; }));
  EXPECT_TRUE(all_are_gone());
}

TEST_F(SessionTest, LeavesNothingBehindWhenDestroyed) {
  start_ready({"--ignore", "TERM", "--grandchild"});
  session.reset();
  EXPECT_TRUE(all_are_gone());
}

TEST_F(SessionTest, EndsWhatACrashedServerLeftBehind) {
  start_ready({"--grandchild"});
  EXPECT_EQ(cause_of(ask("fake/crash")), "crashed");
  ASSERT_TRUE(turn_until([this] { return gone; }));
  EXPECT_TRUE(all_are_gone());
}

TEST_F(SessionTest, RefusesCallsBeyondItsBound) {
  settings.most_waiting = 1000;
  start_ready();
  EXPECT_EQ(cause_of(ask("fake/echo", '"' + std::string(2000, 'x') + '"')), "overloaded");
}

TEST_F(SessionTest, FailsACallThatIsMadeWhenItIsDown) {
  start_ready();
  session->kill(Cause::crashed, "had enough");
  const CallResult result = ask("fake/echo", "[1]");
  EXPECT_EQ(cause_of(result), "crashed");
  EXPECT_EQ(session->pending(), 0U);
}

TEST_F(SessionTest, TakesMoreOfItsOwnerThanCallsMayHaveWaiting) {
  settings.most_waiting = 100'000;
  start_ready();
  const std::string text = R"({"text":")" + std::string(90'000, 'x') + "\"}";
  for (int i = 0; i < 10; ++i) session->notify("fake/notice", text);
  EXPECT_TRUE(turn_until([this] { return session->waiting_bytes() == 0; }));
  EXPECT_EQ(ask("fake/echo", "[1]").text, "[1]");
  EXPECT_FALSE(failure);
}

TEST_F(SessionTest, GivesUpOnAServerThatDoesNotRead) {
  settings.patience.silence = milliseconds(300);
  start_ready();
  signal_server(SIGSTOP);
  session->notify("fake/notice", R"({"text":")" + std::string(1'000'000, 'x') + "\"}");
  ASSERT_TRUE(turn_until([this] { return failure.has_value(); }));
  EXPECT_NE(failure->message.find("does not read its stdin"), std::string::npos) << failure->message;
  EXPECT_TRUE(turn_until([this] { return gone; }));
}

TEST_F(TimedSessionTest, WaitsForAServerThatReadsSlowly) {
  start_ready();
  signal_server(SIGSTOP);
  for (int i = 0; i < 4; ++i) {
    session->notify("fake/notice", R"({"text":")" + std::string(3'000'000, 'x') + "\"}");
    pass(seconds(50));
    EXPECT_FALSE(failure);
    const std::size_t before = session->waiting_bytes();
    signal_server(SIGCONT);
    EXPECT_TRUE(turn_until([&] { return session->waiting_bytes() < before; })) << before;
    signal_server(SIGSTOP);
  }
  signal_server(SIGCONT);
  EXPECT_FALSE(failure);
  const CallResult echoed = ask("fake/echo", "[1]");
  EXPECT_EQ(echoed.text, "[1]") << (echoed.error ? echoed.error->message() + " " + echoed.error->data() : "");
}

TEST_F(SessionTest, GivesUpOnAHungServerWhoseCallsAreAllCancelled) {
  settings.patience.silence = milliseconds(500);
  start_ready();
  signal_server(SIGSTOP);
  for (int i = 0; i < 30 && !failure; ++i) {
    std::optional<CallResult> result;
    const std::uint64_t id = call("fake/never", {}, result);
    if (!turn_until([this] { return failure.has_value(); }, milliseconds(100))) session->cancel(id);
    turn_until([this] { return failure.has_value(); }, milliseconds(20));
  }
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, Cause::crashed);
}

TEST_F(TimedSessionTest, OwesNoAnswerToACallThatItWasNeverSent) {
  start_ready();
  signal_server(SIGSTOP);
  session->notify("fake/notice", R"({"text":")" + std::string(1'000'000, 'x') + "\"}");
  std::optional<CallResult> unsent;
  call("fake/echo", "[1]", unsent, seconds(1));
  ASSERT_TRUE(turn_until([&] {
    pass(milliseconds(100));
    return unsent.has_value();
  }));
  EXPECT_EQ(cause_of(*unsent), "timeout");
  signal_server(SIGCONT);
  EXPECT_TRUE(turn_until([this] { return session->waiting_bytes() == 0; }));
  pass(std::chrono::hours(1));
  EXPECT_EQ(ask("fake/echo", "[2]").text, "[2]");
  EXPECT_FALSE(failure);
}

TEST_F(SessionTest, RemembersOnlySoManyCallsThatNobodyAnswered) {
  start_ready();
  std::size_t timed_out = 0;
  constexpr std::size_t asked = 1100;
  for (std::size_t i = 0; i < asked; ++i) {
    session->call("fake/never", std::to_string(i), milliseconds(300), [&](const CallResult&) { ++timed_out; });
  }
  ASSERT_TRUE(turn_until([&] { return timed_out == asked; }));
  session->kill(Cause::crashed, "to see");
  EXPECT_LE(session->in_flight_at_end().size(), 1001U);
}

TEST_F(SessionTest, StopsAlthoughTheGuardStandsStill) {
  start_ready({"--ignore", "TERM", "--grandchild"});
  kill(session->guard_pid(), SIGSTOP);
  session->stop();
  ASSERT_TRUE(turn_until([this] { return gone; }));
  EXPECT_TRUE(all_are_gone());
}

TEST_F(SessionTest, StopsAlthoughTheGuardIsHeldAgainAndAgain) {
  settings.patience.exit = milliseconds(100);
  start_ready({"--ignore", "exit", "--ignore", "TERM"});
  const pid_t guard = session->guard_pid();
  session->stop();
  transport::Loop::Timer again;
  const std::function<void()> hold = [&] {
    if (!gone) kill(guard, SIGSTOP);
    again = loop.after(milliseconds(1), hold);
  };
  hold();
  ASSERT_TRUE(turn_until([this] { return gone; }));
  EXPECT_TRUE(turn_until([this] { return all_are_gone(); }));
}

TEST_F(SessionTest, LeavesNothingBehindWhenDestroyedWithAGuardThatStandsStill) {
  start_ready({"--ignore", "TERM", "--grandchild"});
  kill(session->guard_pid(), SIGSTOP);
  session.reset();
  EXPECT_TRUE(turn_until([this] { return all_are_gone(); }));
}

}  // namespace
}  // namespace duet::bridge
