// The code that docs/library.md quotes, and what it says that code does. scripts/check_library builds and runs it, and
// scripts/guide_code.py sees to it that the page has no other code.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <duet/duet.h>

#include "../expect.h"

using namespace std::chrono_literals;

namespace {

void expect_text(std::string_view seen, std::string_view expected) {
  expect(seen == expected, "\"" + std::string(seen) + "\" is \"" + std::string(expected) + '"');
}

// What a table answers to one request.
std::string answer(const duet::Methods& methods, std::string_view method, std::string_view params) {
  duet::Conversation talk(duet::Protocol::json_lines(), methods);
  const std::string request =
      R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) + R"(","params":)" + std::string(params) + "}\n";
  talk.receive(request, {});
  const std::string answer(talk.output());
  talk.written(answer.size());
  constexpr std::string_view envelope = R"({"jsonrpc":"2.0","id":1,)";
  if (!answer.starts_with(envelope)) return answer;
  return answer.substr(envelope.size(), answer.size() - envelope.size() - 2);  // without `}` and the line's end
}

struct Submit {
  std::string prompt;
  std::optional<std::string> agent;
  int priority = 0;
};
BOOST_DESCRIBE_STRUCT(Submit, (), (prompt, agent, priority))

struct Submitted {
  std::string taskId;
};
BOOST_DESCRIBE_STRUCT(Submitted, (), (taskId))

class Queue {
 public:
  std::string push(const Submit& task) {
    tasks_.push_back(task);
    return "t" + std::to_string(tasks_.size());
  }

 private:
  std::vector<Submit> tasks_;
};

void methods() {
  duet::Methods methods;
  Queue queue;
  methods
      .add("task.submit", "Queues a task",
           [&queue](const Submit& task) {
             if (task.priority > 9) throw duet::Error(-32000, "Nothing is that urgent", {{"most", 9}});
             return Submitted{queue.push(task)};
           })
      .describe(&Submit::prompt, "What the agent is to do");
  expect_text(answer(methods, "task.submit", R"({"prompt":"tidy up"})"), R"("result":{"taskId":"t1"})");
  expect_text(answer(methods, "task.submit", R"(["tidy up",null,3])"), R"("result":{"taskId":"t2"})");
  expect_text(answer(methods, "task.submit", R"(["tidy up",null,10])"),
              R"("error":{"code":-32000,"message":"Nothing is that urgent","data":{"most":9}})");
  expect_text(answer(methods, "task.submit", R"({"prompt":5})"),
              R"("error":{"code":-32602,"message":"Invalid params",)"
              R"("data":{"param":"prompt","expected":"string","received":"number"}})");
}

void late_answers() {
  duet::base::VirtualClock clock;
  duet::Loop loop(clock);
  duet::Methods methods;
  methods.add("wake", "Answers after a while", {"seconds"}, [&loop](int wait, duet::Reply<std::string> reply) {
    const auto waiting = shared(std::move(reply));
    const auto timer = std::make_shared<duet::Loop::Timer>(
        loop.after(std::chrono::seconds(wait), [waiting] { waiting->ok("good morning"); }));
    waiting->on_abandoned([timer] { timer->cancel(); });
  });

  duet::Conversation talk(duet::Protocol::json_lines(), methods);
  talk.receive("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"wake\",\"params\":[3600]}\n", clock.now());
  expect(talk.output().empty(), "nothing is answered yet");
  clock.advance(1h);
  loop.turn(0s);
  expect_text(talk.output(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"good morning\"}\n");
  talk.written(talk.output().size());

  talk.receive("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"wake\",\"params\":[3600]}\n", clock.now());
  expect(loop.next().has_value(), "a timer runs");
  talk.receive("{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":2}}\n", clock.now());
  expect(!loop.next().has_value(), "the timer of a cancelled request is gone");
}

std::string read_whole_file(const std::string& path) {
  if (path == "missing") throw duet::Error(-32000, "No such file", path);
  return "text of " + path;
}

void work_elsewhere() {
  duet::Loop loop;
  duet::Methods methods;
  methods.add("read", "The text of a file", {"path"}, [&loop](std::string path, duet::Reply<std::string> reply) {
    loop.run_elsewhere([path] { return read_whole_file(path); },
                       [reply = std::move(reply)](duet::base::Result<std::string> text) mutable {
                         try {
                           reply.ok(text.get());  // get() throws what the work threw
                         } catch (const duet::Error& error) {
                           reply.fail(error);
                         } catch (const std::exception&) {  // else it would leave the loop
                           reply.fail(duet::Error(-32603, "Internal error"));
                         }
                       });
  });

  duet::Conversation talk(duet::Protocol::json_lines(), methods);
  for (const auto& [path, expected] :
       {std::pair("a.txt", R"("result":"text of a.txt")"),
        std::pair("missing", R"("error":{"code":-32000,"message":"No such file","data":"missing"})")}) {
    talk.receive(R"({"jsonrpc":"2.0","id":1,"method":"read","params":[")" + std::string(path) + "\"]}\n", {});
    while (talk.output().empty()) loop.turn(20s);
    expect_text(talk.output(), R"({"jsonrpc":"2.0","id":1,)" + std::string(expected) + "}\n");
    talk.written(talk.output().size());
  }
}

void other_threads() {
  duet::Loop loop;
  std::vector<int> measured;
  std::thread sensor([remote = loop.remote(), &measured, &loop] {
    const bool was_there = remote.post([&measured, &loop] {  // runs on the loop's thread
      measured.push_back(21);
      loop.stop();
    });
    expect(was_there, "the loop is there");
  });
  loop.run();
  sensor.join();
  expect(measured.size() == 1, "what was posted has run");
}

void calling_back(const std::string& path) {
  duet::Loop loop;
  duet::Log log(nullptr);
  duet::Server server(loop, log);
  server.methods().add("shout", "Tells everybody", [&server](const duet::Json& params) {
    server.broadcast("shouted", params);
    return server.client_count();
  });
  server.start(path);
  std::thread serving([&loop] { loop.run(); });

  duet::Client client;
  std::string heard;
  client.on("shouted", [&heard](const duet::Json& params) { heard = params.text(); });
  client.connect(path);
  client.call("shout", {{"text", "hello"}});
  client.wait_for([&heard] { return !heard.empty(); }, std::chrono::seconds(5));
  expect_text(heard, R"({"text":"hello"})");
  loop.stop();
  serving.join();
}

void testing() {
  duet::Methods methods;
  methods.add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  {
    duet::Loop loop;
    duet::Log log(nullptr);
    duet::Methods none;
    auto [here, there] = duet::transport::memory_pair(loop);
    duet::Connection server(loop, std::move(here), duet::Protocol::json_lines(), methods, log);
    duet::Connection client(loop, std::move(there), duet::Protocol::json_lines_client(), none, log);
    server.open();
    client.open();

    std::optional<duet::Outcome> sum;
    client.call("add", {2, 3}, std::chrono::seconds(5), [&sum](duet::Outcome outcome) { sum = std::move(outcome); });
    while (!sum) loop.turn();
    expect(sum->result == "5", "2 and 3 are 5");
  }
  {
    duet::Conversation talk(duet::Protocol::json_lines(), methods);
    talk.receive(R"({"jsonrpc":"2.0","id":1,"method":"add","params":{"a":2,"b":3}})", {});
    talk.receive("\n", {});
    expect(talk.output().starts_with(R"({"jsonrpc":"2.0","id":1,"result":5})"), "2 and 3 are 5");
  }
}

void websockets() {
  duet::Loop loop;
  duet::Log log(nullptr);
  std::vector<duet::Connection*> listeners;
  duet::Server server(loop, log,
                      {.on_opened = [&listeners](duet::Connection& client) { listeners.push_back(&client); }});
  auto [channel, client] = duet::transport::memory_pair(loop);
  const std::string read_too_much("\x89\x81\x00\x00\x00\x00?", 7);  // a Ping
  server.admit(std::move(channel), {}, duet::Protocol::websocket(), read_too_much);

  duet::Announcement news("news", {{"text", "hello"}});
  for (duet::Connection* listener : listeners) listener->send(news, 1'000'000);  // false: so much waits for it already
  loop.turn(0s);
  std::array<char, 1000> room;
  const duet::transport::IoResult moved = client->read(room);
  expect_text({room.data(), moved.count},
              "\x8A\x01?\x81\x3B{\"jsonrpc\":\"2.0\",\"method\":\"news\",\"params\":{\"text\":\"hello\"}}");
}

// Somebody else's way to move bytes, for the next function.
std::string sent;
std::size_t write_some(std::string_view bytes) {
  const std::string_view some = bytes.substr(0, 7);
  sent += some;
  return some.size();
}
void wake_me_at(duet::base::TimePoint) {}

void conversation() {
  duet::Methods methods;
  methods.add("ping", [] { return "pong"; });
  const duet::base::TimePoint now(1h);
  const std::string_view bytes = "Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

  duet::Conversation talk(duet::Protocol::lsp_server(), methods);
  talk.receive(bytes, now);         // any portion; handlers run in here
  while (!talk.output().empty()) {  // what is to be written
    talk.written(write_some(talk.output()));
  }
  if (talk.deadline()) wake_me_at(*talk.deadline());  // a time in the past means now
  talk.tick(now);                                     // then
  const duet::CallId call = talk.call("window/showDocument", {{"uri", "file:///a.txt"}}, std::chrono::seconds(5),
                                      [](const duet::Outcome& /*outcome*/) { /* exactly one comes */ });
  talk.cancel(call);  // nobody wants the answer any more
  talk.end_of_input(now);
  expect_text(sent, "Content-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"pong\"}");
  expect(talk.is_over(), "nothing is owed");
}

class Heart {
 public:
  explicit Heart(duet::Loop& loop) : loop_(loop) { beat(); }

 private:
  // The new timer replaces the one that has run.
  void beat() {
    timer_ = loop_.after(std::chrono::seconds(1), [this] { beat(); });
  }

  duet::Loop& loop_;
  duet::Loop::Timer timer_;  // cancels itself: no destructor is needed
};

void timers() {
  duet::base::VirtualClock clock;
  duet::Loop loop(clock);
  {
    Heart heart(loop);
    clock.advance(1s);
    loop.turn(0s);
    expect(loop.next().has_value(), "it beats again");
  }
  expect(!loop.next().has_value(), "its timer went with it");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  methods();
  late_answers();
  work_elsewhere();
  other_threads();
  calling_back(argv[1]);
  testing();
  websockets();
  conversation();
  timers();
}
