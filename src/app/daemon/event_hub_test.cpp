#include "app/daemon/event_hub.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "duet/base/log_tape_test.h"
#include "duet/peer/far_end_test.h"
#include "duet/peer/server.h"
#include "duet/rpc/value.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/temporary_folder_test.h"
#include "duet/transport/unix_socket.h"

namespace duet::app {
namespace {

using boost::json::object;
using Strings = std::vector<std::string>;
using Numbers = std::vector<std::uint64_t>;

Numbers range(std::uint64_t first, std::uint64_t last) {
  Numbers numbers(last + 1 - first);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// A client that remembers what it was sent, in order.
class Client {
 public:
  Client(transport::Loop& loop, const std::string& path)
      : far_(std::make_unique<transport::FdChannel>(loop, transport::connect_unix(path))) {}

  peer::FarEnd& far() { return far_; }
  void subscribe(const std::string& params) {
    far_.send(R"({"jsonrpc":"2.0","id":"s","method":"events.subscribe","params":)" + params + "}\n");
  }

  /// What came since the last time, as words: `answer`, `12`, `overflow 7`, `output 0`, `error`.
  Strings take() {
    Strings words;
    for (const std::string& line : far_.take(peer::Framing::lines)) words.push_back(word_of(line));
    return words;
  }
  /// The same when only events may have come.
  Numbers numbers() {
    Numbers numbers;
    for (const std::string& word : take()) numbers.push_back(std::stoull(word));
    return numbers;
  }
  const object& answer() const { return answer_; }

 private:
  std::string word_of(const std::string& line) {
    const boost::json::value parsed = rpc::parse_value(line);
    const object& message = parsed.as_object();
    if (message.contains("error")) return "error";
    if (message.contains("result")) {
      if (message.at("id") != "s") return "reply";
      answer_ = message.at("result").as_object();
      return "answer";
    }
    const object& params = message.at("params").as_object();
    const std::string method(message.at("method").as_string());
    if (method == "event.taskOutput") return "output " + rpc::to_text(params.at("offset"));
    const std::string seq = rpc::to_text(params.at("seq"));
    return method == "event.overflow" ? "overflow " + seq : seq;
  }

  peer::FarEnd far_;
  object answer_;
};

struct Setting {
  explicit Setting(EventHub::Limits limits = {}, task::Journal::Limits kept = {})
      : store(loop, std::make_unique<task::StoreFolder>(descriptor.get())),
        journal(store, kept),
        hub(loop, journal, limits) {
    journal.add_reader([this](const task::Event&) { hub.take_news(); });
    hub.add_subscribe_method(server.methods(), [] {});
    server.register_method("ping", [](const peer::Request&) { return rpc::Json(nullptr); });
    const auto keep = [this](peer::Reply<> reply) { replies.push_back(std::move(reply)); };
    server.methods().add("late", keep);
    server.methods().add("durable", keep).pipelined();
    server.start(folder.file("socket"));
  }

  std::unique_ptr<Client> connect() {
    auto client = std::make_unique<Client>(loop, folder.file("socket"));
    turn();
    return client;
  }
  void turn(int times = 10) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }
  void emit_of(task::TaskId task, const std::string& kind) {
    const std::uint64_t seq = journal.next();
    const object params{{"taskId", task::to_text(task)}, {"seq", seq}};
    journal.publish({{.seq = seq, .kind = kind, .task = task, .params = rpc::to_text(params)}});
  }
  void emit(int count, const std::string& kind = "taskQueued") {
    for (int i = 0; i < count; ++i) emit_of(journal.next(), kind);
  }

  transport::TemporaryFolder folder;
  base::Fd descriptor{open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  std::vector<peer::Reply<>> replies;
  peer::Server server{loop,
                      tape.log(),
                      {.on_opened = [this](peer::Connection& client) { hub.client_opened(client); },
                       .on_load_changed = [this](peer::Connection& client) { hub.client_load_changed(client); },
                       .on_forgotten = [this](std::uint64_t client) { hub.client_forgotten(client); }}};
  task::Store store;
  task::Journal journal;
  EventHub hub;
};

TEST(EventHub, TellsEveryClientFromTheMomentItIsConnected) {
  Setting s;
  s.emit(3);
  const auto first = s.connect();
  s.emit(2);
  const auto second = s.connect();
  s.emit(2);
  s.turn();
  EXPECT_EQ(first->numbers(), range(4, 7));
  EXPECT_EQ(second->numbers(), range(6, 7));
}

TEST(EventHub, TellsWhoComesWhileTheDaemonStops) {
  Setting s;
  s.emit(3);
  s.emit(1, "daemonStopping");
  s.emit(1);
  const auto late = s.connect();
  late->subscribe(R"({"kinds":["daemonStopping"]})");
  s.turn();
  EXPECT_EQ(late->take(), (Strings{"answer", "4"}));
}

TEST(EventHub, AnswersFirstThenReplaysThenGoesOn) {
  Setting s;
  s.emit(5);
  const auto client = s.connect();
  client->subscribe(R"({"since":2})");
  s.turn();
  s.emit(1);
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"answer", "2", "3", "4", "5", "6"}));
  EXPECT_EQ(client->answer().at("next").to_number<int>(), 6);
  EXPECT_EQ(client->answer().at("epoch").as_string(), s.journal.epoch());
  EXPECT_FALSE(client->answer().contains("missed"));
}

TEST(EventHub, ReplaysNothingThatThisConnectionHasHad) {
  Setting s;
  s.emit(3);
  const auto client = s.connect();
  s.emit(2);
  s.turn();
  EXPECT_EQ(client->numbers(), range(4, 5));
  client->subscribe(R"({"since":1})");
  s.emit(1);  // before it is handled
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"6", "answer", "1", "2", "3"}));
  client->subscribe(R"({"since":1})");
  s.turn();
  EXPECT_EQ(client->take(), Strings{"answer"});
}

TEST(EventHub, ReplaysWhatAnEarlierFilterKeptBack) {
  Setting s;
  const auto client = s.connect();
  client->subscribe(R"({"kinds":["taskFailed"]})");
  s.turn();
  s.emit(2);
  s.emit(1, "taskFailed");
  s.emit(1);
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"answer", "3"}));
  client->subscribe(R"({"since":1})");
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"answer", "1", "2", "4"}));
}

TEST(EventHub, SubscribingOftenGivesNothingTwice) {
  Setting s;
  const auto client = s.connect();
  Numbers got;
  const auto take = [&] {
    for (const std::string& word : client->take()) {
      if (word != "answer") got.push_back(std::stoull(word));
    }
  };
  for (int i = 0; i < 200; ++i) {
    s.emit(1);
    client->subscribe(i % 3 == 0 ? R"({"since":1})" : "{}");
    s.turn();
    take();
  }
  client->subscribe(R"({"since":1})");
  s.turn();
  take();
  EXPECT_EQ(got, range(1, 200));
}

TEST(EventHub, NothingComesTwiceHoweverOftenTheFilterChanges) {
  Setting s;
  const auto client = s.connect();
  Numbers got;
  const auto take = [&] {
    for (const std::string& word : client->take()) {
      if (word != "answer") got.push_back(std::stoull(word));
    }
  };
  for (int i = 1; i <= 150; ++i) {
    client->subscribe(R"({"taskIds":["task-)" + std::to_string(i) + R"("]})");
    s.turn();
    s.emit(1);
    s.turn();
    take();
  }
  EXPECT_EQ(got, range(1, 150));
  client->subscribe(R"({"since":1})");
  s.turn();
  take();
  EXPECT_EQ(got, range(1, 150));
}

TEST(EventHub, NarrowsByKindAndTask) {
  Setting s;
  const auto kinds = s.connect();
  const auto tasks = s.connect();
  kinds->subscribe(R"({"kinds":["taskFailed","event.taskCompleted"]})");
  tasks->subscribe(R"({"taskIds":["task-2","task-5"]})");
  s.turn();
  s.emit(2);
  s.emit(2, "taskFailed");
  s.emit(1, "taskCompleted");
  s.turn();
  EXPECT_EQ(kinds->take(), (Strings{"answer", "3", "4", "5"}));
  EXPECT_EQ(tasks->take(), (Strings{"answer", "2", "5"}));
}

TEST(EventHub, TakesParamsByPositionAndRefusesWrongOnes) {
  Setting s;
  s.emit(2);
  const auto client = s.connect();
  client->subscribe(R"([1,["taskQueued"],["task-2"]])");
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"answer", "2"}));
  for (const char* const wrong :
       {R"({"since":-1})", R"({"since":"1"})", R"({"since":1.5})", R"({"kinds":"taskQueued"})", R"({"kinds":[1]})",
        R"({"kinds":["taskqueued"]})", R"({"taskIds":[{}]})", R"({"taskIds":"task-1"})"}) {
    client->subscribe(wrong);
    s.turn();
    EXPECT_EQ(client->take(), Strings{"error"}) << wrong;
  }
  s.emit_of(2, "taskQueued");
  s.emit(1);
  s.turn();
  EXPECT_EQ(client->numbers(), Numbers{3}) << "the subscription is what it was";
}

TEST(EventHub, SaysWhenTheHistoryIsGone) {
  Setting s({}, {.bytes = 2000});
  s.emit(100);
  const std::uint64_t oldest = s.journal.oldest();
  ASSERT_GT(oldest, 1U);
  const auto client = s.connect();
  client->subscribe(R"({"since":1})");
  s.turn();
  EXPECT_EQ(client->answer().size(), 0U);
  const Strings words = client->take();
  EXPECT_EQ(words.size(), 1 + 101 - oldest);
  EXPECT_EQ(client->answer().at("missed"), true);
  EXPECT_EQ(client->answer().at("oldest").to_number<std::uint64_t>(), oldest);
}

TEST(EventHub, ReplaysTheOldestThoughItIsForgottenRightAfter) {
  Setting s({}, {.bytes = 2000});
  s.emit(100);
  const auto client = s.connect();
  const auto other = s.connect();
  s.server.register_method("emit", [&](const peer::Request&) {
    s.emit(5);
    return rpc::Json(nullptr);
  });
  const std::uint64_t oldest = s.journal.oldest();
  client->subscribe(R"({"since":1})");
  other->far().send(R"({"jsonrpc":"2.0","method":"emit"})"
                    "\n");
  s.turn();
  Strings words = client->take();
  EXPECT_EQ(words.front(), "answer");
  words.erase(words.begin());
  Strings expected;
  for (const std::uint64_t seq : range(oldest, 105)) expected.push_back(std::to_string(seq));
  EXPECT_EQ(words, expected);
}

TEST(EventHub, SaysWhenTheNumberIsOneOfAnotherHistory) {
  Setting s;
  s.emit(3);
  const auto client = s.connect();
  client->subscribe(R"({"since":5})");
  s.turn();
  EXPECT_EQ(client->take(), Strings{"answer"});
  EXPECT_EQ(client->answer().at("missed"), true);
  client->subscribe(R"({"since":4})");
  s.turn();
  EXPECT_EQ(client->take(), Strings{"answer"});
  EXPECT_FALSE(client->answer().contains("missed"));
}

TEST(EventHub, ReplaysAfterTheAnswerThoughThatWaitsForAnEarlierOne) {
  Setting s;
  s.emit(3);
  const auto client = s.connect();
  client->far().send(R"({"jsonrpc":"2.0","id":1,"method":"durable"})"
                     "\n");
  client->subscribe(R"({"since":1})");
  s.turn();
  s.emit(1);
  s.turn();
  EXPECT_EQ(client->take(), Strings{});
  s.replies.at(0).ok(nullptr);
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"reply", "answer", "1", "2", "3", "4"}));
}

TEST(EventHub, ReplaysAfterTheAnswerThoughLaterOnesAreOwed) {
  Setting s;
  s.emit(3);
  const auto client = s.connect();
  const std::string durable = R"({"jsonrpc":"2.0","id":1,"method":"durable"})"
                              "\n";
  client->far().send(durable);
  client->subscribe(R"({"since":1})");
  client->far().send(durable);
  s.turn();
  s.replies.at(0).ok(nullptr);
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"reply", "answer", "1", "2", "3"}));
  s.hub.emit_output("task-1", 0, "text");
  s.turn();
  EXPECT_EQ(client->take(), Strings{"output 0"});
}

TEST(EventHub, ReplaysAfterTheAnswerOfABatch) {
  Setting s;
  s.emit(2);
  const auto client = s.connect();
  client->far().send(R"([{"jsonrpc":"2.0","id":1,"method":"durable"},)"
                     R"({"jsonrpc":"2.0","id":2,"method":"events.subscribe","params":{"since":2}}])"
                     "\n");
  s.turn();
  EXPECT_TRUE(client->far().text().empty());
  s.replies.at(0).ok(nullptr);
  s.turn();
  EXPECT_EQ(client->far().text().find("[{"), 0U);
  EXPECT_NE(client->far().text().find(R"("seq":2)"), std::string::npos);
}

TEST(EventHub, ReplaysAtOnceIfTheBatchHasNoAnswer) {
  Setting s;
  s.emit(2);
  const auto client = s.connect();
  client->far().send(R"([{"jsonrpc":"2.0","method":"events.subscribe","params":{"since":1}}])"
                     "\n");
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"1", "2"}));
}

TEST(EventHub, ReplaysAtOnceThoughALaterRequestWaits) {
  Setting s;
  s.emit(3);
  const auto client = s.connect();
  client->subscribe(R"({"since":1})");
  client->far().send(R"({"jsonrpc":"2.0","id":1,"method":"late"})"
                     "\n");
  s.turn();
  EXPECT_EQ(client->take(), (Strings{"answer", "1", "2", "3"}));
  s.emit(1);
  s.turn();
  EXPECT_EQ(client->take(), Strings{"4"});
}

TEST(EventHub, InABatchItsAnswerComesFirstToo) {
  Setting s;
  s.emit(2);
  const auto client = s.connect();
  client->far().send(
      R"([{"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":[1]},{"jsonrpc":"2.0","id":2,"method":"late"}])"
      "\n");
  s.turn();
  s.emit(1);
  s.turn();
  EXPECT_EQ(client->far().text(), "");
  s.replies.at(0).ok(nullptr);
  s.turn();
  EXPECT_EQ(client->far().text().find(R"([{"jsonrpc":"2.0","id":1)"), 0U);
  EXPECT_NE(client->far().text().find(R"("seq":3})"), std::string::npos);
}

TEST(EventHub, OneThatDoesNotReadLosesItsSubscriptionAndNotItsReplies) {
  Setting s({.unread_bytes = 1000}, {.bytes = 50'000});
  const auto client = s.connect();
  client->far().read(false);
  s.turn();
  while (s.journal.oldest() < 5000) {
    s.emit(100);
    s.turn(2);
  }
  client->far().send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"
                     "\n");
  s.turn();
  client->far().read(true);
  s.turn(100);
  const Strings words = client->take();
  ASSERT_GE(words.size(), 3U);
  const auto reply = std::find(words.begin(), words.end(), "reply");
  ASSERT_NE(reply, words.end());
  const std::size_t events = words.size() - 2;
  for (std::size_t i = 0; i < events; ++i) EXPECT_EQ(words[i], std::to_string(i + 1));
  EXPECT_EQ(words[events], "overflow " + std::to_string(events + 1)) << "the first that is missing";
  s.emit(10);
  s.turn();
  EXPECT_EQ(client->take(), Strings{}) << "nothing more until it subscribes again";
  client->subscribe(R"({"since":)" + std::to_string(s.journal.oldest()) + "}");
  s.turn(100);
  const Strings replayed = client->take();
  EXPECT_EQ(replayed.front(), "answer");
  EXPECT_EQ(replayed.back(), std::to_string(s.journal.next() - 1));
}

TEST(EventHub, OneThatReadsLateButInTimeMissesNothing) {
  Setting s({.unread_bytes = 1000}, {.bytes = 10'000'000});
  const auto client = s.connect();
  client->far().read(false);
  s.emit(10'000);
  s.turn();
  EXPECT_LT(s.server.client_count(), 2U);
  client->far().read(true);
  s.turn(3000);
  EXPECT_EQ(client->numbers(), range(1, 10'000));
}

TEST(EventHub, GivesOutputToThoseWhoAskedForIt) {
  Setting s;
  const auto all = s.connect();
  const auto one = s.connect();
  const auto kind = s.connect();
  const auto none = s.connect();
  EXPECT_FALSE(s.hub.wants_output("task-1"));
  one->subscribe(R"({"taskIds":["task-1"]})");
  s.turn();
  EXPECT_TRUE(s.hub.wants_output("task-1"));
  EXPECT_FALSE(s.hub.wants_output("task-2"));
  all->subscribe("{}");
  kind->subscribe(R"({"kinds":["taskFailed"]})");
  s.turn();
  s.hub.emit_output("task-1", 0, "x");
  s.hub.emit_output("task-2", 7, "y");
  s.turn();
  EXPECT_EQ(all->take(), (Strings{"answer", "output 0", "output 7"}));
  EXPECT_EQ(one->take(), (Strings{"answer", "output 0"}));
  EXPECT_EQ(kind->take(), Strings{"answer"});
  EXPECT_EQ(none->take(), Strings{});
}

TEST(EventHub, OutputDuringAReplayIsNoOverflow) {
  Setting s({.unread_bytes = 1000, .unread_output_bytes = 5000});
  s.emit(1000);
  const auto client = s.connect();
  client->subscribe(R"({"since":1})");
  while (client->far().text().empty()) s.turn(1);
  s.hub.emit_output("task-1", 0, "x");
  s.turn(500);
  Strings words = client->take();
  EXPECT_EQ(std::erase(words, "output 0"), 1U);
  EXPECT_EQ(words.size(), 1001U);
}

TEST(EventHub, OutputThatNobodyReadsCostsTheSubscription) {
  Setting s;
  const auto client = s.connect();
  client->subscribe("{}");
  s.turn();
  client->far().read(false);
  s.emit(3);
  for (int i = 0; i < 3000; ++i) s.hub.emit_output("task-1", 0, std::string(1000, 'x'));
  EXPECT_FALSE(s.hub.wants_output("task-1"));
  s.emit(3);
  client->far().read(true);
  s.turn(500);
  EXPECT_EQ(client->take().back(), "overflow 4") << "no event was missed but those after it";
}

TEST(EventHub, ASubscriberThatComesAndGoesJoinsTenThousandEventsUp) {
  Setting s;
  std::mt19937 random(1);
  std::unique_ptr<Client> client;
  std::set<std::uint64_t> got;
  std::set<std::uint64_t> got_here;  // on this connection
  std::uint64_t missing = 1;         // the first that is
  const auto take = [&] {
    for (const std::string& word : client->take()) {
      if (word == "answer") continue;
      EXPECT_TRUE(got_here.insert(std::stoull(word)).second) << word;
    }
    got.insert(got_here.begin(), got_here.end());
    while (got.contains(missing)) ++missing;
  };
  const auto come = [&] {
    got_here.clear();
    client = s.connect();
    client->subscribe(R"({"since":)" + std::to_string(missing) + "}");
  };
  come();
  while (s.journal.next() <= 10'000) {
    s.emit(static_cast<int>(random() % 20));
    s.turn(static_cast<int>(random() % 4));
    if (random() % 10 != 0) continue;
    take();
    client.reset();
    s.emit(static_cast<int>(random() % 50));
    come();
  }
  s.turn(1000);
  take();
  EXPECT_EQ(missing, s.journal.next());
}

// ---- streams ----

/// Takes so much, and remembers it.
struct Reader final : EventStream {
  bool give(const StreamedEvent& event, std::size_t most_waiting) override {
    if (waiting >= std::min(most_waiting, room)) return false;
    ++waiting;
    words.push_back(std::string(event.kind) + (event.seq == 0 ? "" : " " + std::to_string(event.seq)));
    return true;
  }
  void give_last(const StreamedEvent& event) override { words.push_back("last " + std::string(event.kind)); }

  std::size_t room = 1'000;
  std::size_t waiting = 0;
  Strings words;
};

TEST(EventStreams, GetWhatTheyWantAndGoOnWhenTheyHaveRead) {
  Setting s;
  s.emit(3);
  Reader reader;
  reader.room = 2;
  ASSERT_TRUE(s.hub.open_stream(77, reader, {.since = 2}));
  s.emit(2, "taskFailed");
  EXPECT_EQ(reader.words, (Strings{"taskQueued 2", "taskQueued 3"}));
  reader.waiting = 0;
  s.hub.go_on(77);
  EXPECT_EQ(reader.words.back(), "taskFailed 5");
  s.hub.close_stream(77);
  s.emit(1);
  EXPECT_EQ(reader.words.size(), 4U);
}

TEST(EventStreams, AreToldWhatIsMissing) {
  Setting s;
  s.emit(3);
  Reader other;
  ASSERT_TRUE(s.hub.open_stream(77, other, {.since = 3, .epoch = "another"}));
  EXPECT_EQ(other.words, (Strings{"missed", "taskQueued 1", "taskQueued 2", "taskQueued 3"}));
  Reader early;
  ASSERT_TRUE(s.hub.open_stream(78, early, {.since = 9}));
  EXPECT_EQ(early.words, Strings{"missed"});
  EXPECT_FALSE(s.hub.open_stream(79, early, {.kinds = {"nothing"}}));
}

TEST(EventStreams, ThatFallBehindAreToldSoOnceAndHarmNobody) {
  Setting s;
  Reader stuck;
  stuck.room = 0;
  Reader good;
  ASSERT_TRUE(s.hub.open_stream(77, stuck, {.outputs = {"task-1"}}));
  ASSERT_TRUE(s.hub.open_stream(78, good, {.outputs = {"task-1"}}));
  for (int i = 0; i < 3; ++i) s.hub.emit_output("task-1", 0, "words");
  EXPECT_EQ(stuck.words, Strings{"last overflow"});
  EXPECT_EQ(good.words, (Strings{"taskOutput", "taskOutput", "taskOutput"}));
}

}  // namespace
}  // namespace duet::app
