// What the queue's functions on PostgreSQL cost, against the least that a durable queue there can be. Prints a JSON
// line.
//
//   queue_rate --conninfo C --queue floor|duet --load submit  --batch B --count N [--clients W] [--number] [--wake]
//   queue_rate --conninfo C --queue floor|duet --load drain   --batch B --count N --clients W [--number] [--seconds S]
//   queue_rate --conninfo C --queue floor|duet --load latency --count N
//
// submit: W connections, each B tasks a call, until N are in. drain: N are put in first; then each connection ends the
// B that it has and takes the next B, in one call and one commit. latency: from before a submit until a connection that
// was waiting has claimed the task. --number: one more connection numbers events every 20 ms. --wake: after each submit
// workers are woken. --behind: as a daemon does, a look over many tasks that are gone is followed by looks behind what
// was taken last. --plain: statements are not prepared, as behind a pooler; else they are, as the daemon does it.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <libpq-fe.h>

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

struct Options {
  std::map<std::string, std::string> given;
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = given.find(name);
    return found == given.end() ? otherwise : found->second;
  }
  long number(const std::string& name, long otherwise) const {
    return std::stol(text(name, std::to_string(otherwise)));
  }
  bool has(const std::string& name) const { return given.contains(name); }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Freed {
  void operator()(PGresult* result) const { PQclear(result); }
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Answer = std::unique_ptr<PGresult, Freed>;

std::string list_of(const Words& items) {
  std::string text = "{";
  for (const std::string& item : items) text += (text.size() > 1 ? "," : "") + item;
  return text + "}";
}

std::string same(const std::string& item, std::size_t many) { return list_of(Words(many, item)); }

std::string random_id() {
  thread_local std::mt19937_64 chance{std::random_device{}() * 0x9e3779b97f4a7c15ULL + std::random_device{}()};
  char text[37];
  const unsigned long long a = chance();
  const unsigned long long b = chance();
  std::snprintf(text, sizeof text, "%08llx-%04llx-4%03llx-9%03llx-%012llx", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                b >> 52, b & 0xffffffffffff);
  return text;
}

/// A connection whose statements are prepared once. Those between two commits go out together.
class Line {
 public:
  explicit Line(const std::string& conninfo) : raw_(PQconnectdb(conninfo.c_str())) {
    if (PQstatus(raw_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(raw_.get()));
    PQenterPipelineMode(raw_.get());
  }

  void prepare(const std::string& name, const std::string& text) {
    PQsendPrepare(raw_.get(), name.c_str(), text.c_str(), 0, nullptr);
    ++waited_for_;
  }
  void send(const std::string& name, const Words& words = {}) {
    std::vector<const char*> values;
    for (const std::string& word : words) values.push_back(word == "NULL" ? nullptr : word.c_str());
    const int many = static_cast<int>(values.size());
    const auto plain = plain_.find(name);
    if (plain == plain_.end()) {
      PQsendQueryPrepared(raw_.get(), name.c_str(), many, values.data(), nullptr, nullptr, 0);
    } else {
      PQsendQueryParams(raw_.get(), plain->second.c_str(), many, nullptr, values.data(), nullptr, nullptr, 0);
    }
    ++waited_for_;
  }
  /// Sent as text each time, as the daemon does.
  void keep_plain(const std::string& name, const std::string& text) { plain_[name] = text; }
  void commit() {
    PQpipelineSync(raw_.get());
    ++waited_for_;
  }
  /// The answers to all that was sent.
  std::vector<Answer> answers() {
    std::vector<Answer> all;
    for (; waited_for_ > 0;) {
      Answer answer(PQgetResult(raw_.get()));
      if (!answer) continue;
      --waited_for_;
      const ExecStatusType status = PQresultStatus(answer.get());
      if (status == PGRES_PIPELINE_SYNC) continue;
      if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw std::runtime_error(PQresultErrorMessage(answer.get()));
      }
      all.push_back(std::move(answer));
    }
    return all;
  }
  std::vector<Answer> run(const std::string& name, const Words& words = {}) {
    send(name, words);
    commit();
    return answers();
  }
  /// What the server's process for this connection has used of a processor, in seconds; 0 if it is not on this machine.
  double server_cpu() const {
    std::ifstream file("/proc/" + std::to_string(PQbackendPID(raw_.get())) + "/schedstat");
    double nanoseconds = 0;
    file >> nanoseconds;
    return nanoseconds / 1e9;
  }
  bool is_notified(int milliseconds) {
    const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
    for (;;) {
      PQconsumeInput(raw_.get());
      bool found = false;
      while (PGnotify* note = PQnotifies(raw_.get())) {
        PQfreemem(note);
        found = true;
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (found || left <= 0) return found;
      pollfd wanted{PQsocket(raw_.get()), POLLIN, 0};
      poll(&wanted, 1, static_cast<int>(left));
    }
  }

 private:
  std::unique_ptr<PGconn, Freed> raw_;
  std::map<std::string, std::string> plain_;
  int waited_for_ = 0;
};

struct Taken {
  Words ids;
  Words fences;
};

/// A queue as one client of it sees it.
class Queue {
 public:
  explicit Queue(const std::string& conninfo) : line(conninfo) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  virtual void submit(std::size_t many) = 0;
  /// Ends what was taken, and takes more.
  virtual Taken turn(const Taken& ended, long most) = 0;
  virtual void fill(long count) = 0;
  virtual void listen() = 0;
  virtual void wait_for_more() = 0;
  virtual void wake() = 0;
  virtual void number() {}

  Line line;
};

class Floor : public Queue {
 public:
  explicit Floor(const std::string& conninfo) : Queue(conninfo) {
    line.prepare("submit", "INSERT INTO floor.task(body) SELECT unnest($1::text[])");
    line.prepare("take",
                 "UPDATE floor.task t SET state = 2 WHERE t.id = ANY (ARRAY(SELECT id FROM floor.task WHERE state = 1"
                 " ORDER BY priority DESC, id LIMIT $1::integer FOR UPDATE SKIP LOCKED)) RETURNING t.id, t.body");
    line.prepare("end", "UPDATE floor.task SET state = 3 WHERE id = ANY ($1::bigint[])");
    line.prepare("fill", "INSERT INTO floor.task(body) SELECT repeat('x', 200) FROM generate_series(1, $1::bigint)");
    line.prepare("listen", "LISTEN rate");
    line.prepare("wake", "SELECT pg_notify('rate', '')");
    line.commit();
    line.answers();
  }
  void submit(std::size_t many) override { line.send("submit", {same(std::string(200, 'x'), many)}); }
  Taken turn(const Taken& ended, long most) override {
    if (!ended.ids.empty()) line.send("end", {list_of(ended.ids)});
    line.send("take", {std::to_string(most)});
    line.commit();
    const std::vector<Answer> all = line.answers();
    Taken taken;
    for (int row = 0; row < PQntuples(all.back().get()); ++row)
      taken.ids.emplace_back(PQgetvalue(all.back().get(), row, 0));
    return taken;
  }
  void fill(long count) override { line.run("fill", {std::to_string(count)}); }
  void listen() override { line.run("listen"); }
  void wait_for_more() override {}
  void wake() override { line.send("wake"); }
};

class Duet : public Queue {
 public:
  Duet(const std::string& conninfo, bool looks_behind, bool is_prepared)
      : Queue(conninfo), looks_behind_(looks_behind), is_prepared_(is_prepared) {
    prepare("attach", "attach_v1", 14);
    prepare("submit", "submit_v1", 19);
    prepare("report", "report_v1", 27);
    prepare("wait", "wait_v1", 3);
    prepare("wake", "wake_v1", 4);
    prepare("number", "number_v1", 1);
    line.prepare("fill",
                 "SELECT count(*) FROM generate_series(1, $3::bigint, 10000) g, LATERAL (SELECT least(10000, "
                 "$3::bigint - g + 1)::integer AS n) k,"
                 " LATERAL (SELECT array_agg(gen_random_uuid()) AS ids FROM generate_series(1, k.n)) i, LATERAL "
                 "duet.submit_v1($1::bigint, $2::uuid, i.ids,"
                 " NULL, array_fill('claude'::text, ARRAY[n]), array_fill('default'::text, ARRAY[n]), "
                 "array_fill(''::text, ARRAY[n]),"
                 " array_fill(false, ARRAY[n]), array_fill(0::bigint, ARRAY[n]), NULL, NULL, NULL, NULL, "
                 "array_fill('\"x\"'::text, ARRAY[n]),"
                 " array_fill('{}'::text, ARRAY[n]), NULL, array_fill(repeat('x', 200), ARRAY[n]), NULL, NULL) s");
    line.commit();
    line.answers();
    const std::vector<Answer> answer =
        line.run("attach", {random_id(), "NULL", "{}", incarnation_, "machine", "90000", "600000", "{}", "{claude}",
                            "{claude}", "100", "true", "bench", "1"});
    const std::string text = PQgetvalue(answer[0].get(), 0, 0);
    const std::size_t at = text.find(':') + 1;
    id_ = std::to_string(std::stol(text.substr(at)));
    line.prepare("listen", "LISTEN duet_w" + id_);
    line.commit();
    line.answers();
  }
  void submit(std::size_t many) override {
    Words ids;
    for (std::size_t i = 0; i < many; ++i) ids.push_back(random_id());
    line.send("submit", {id_, incarnation_, list_of(ids), "NULL", same("claude", many), same("default", many),
                         same("\"\"", many), same("f", many), same("0", many), "NULL", "NULL", "NULL", "NULL",
                         same("\"\\\"" + std::string(200, 'x') + "\\\"\"", many), same("\"{}\"", many), "NULL",
                         same(std::string(200, 'x'), many), "NULL", "NULL"});
  }
  Taken turn(const Taken& ended, long most) override {
    const std::size_t n = ended.ids.size();
    const bool is_behind = looks_behind_ && !place_.empty() && Clock::now() < full_look_after_;
    const std::vector<Answer> all = line.run("report", {id_,
                                                        incarnation_,
                                                        "NULL",
                                                        list_of(ended.ids),
                                                        list_of(ended.fences),
                                                        same("t", n),
                                                        same("0", n),
                                                        "NULL",
                                                        "NULL",
                                                        "NULL",
                                                        same("7", n),
                                                        same("5", n),
                                                        same("1", n),
                                                        same("1000", n),
                                                        same("4096", n),
                                                        same("0", n),
                                                        "NULL",
                                                        "NULL",
                                                        "NULL",
                                                        same("2", n),
                                                        same("\"\\\\x646f6e65\"", n),
                                                        "NULL",
                                                        std::to_string(most),
                                                        "{}",
                                                        "{}",
                                                        "NULL",
                                                        is_behind ? place_ : "NULL"});
    Taken taken;
    const PGresult* const rows = all[0].get();
    for (int row = 0; row < PQntuples(rows); ++row) {
      const std::string what = PQgetvalue(rows, row, 0);
      if (what == "fenced") throw std::runtime_error("fenced");
      if (what == "slow") {
        const std::chrono::microseconds wait(10 * std::stoll(PQgetvalue(rows, row, 2)));
        full_look_after_ = Clock::now() + std::min<Clock::duration>(wait, std::chrono::seconds(1));
      }
      if (what != "claim") continue;
      taken.ids.emplace_back(PQgetvalue(rows, row, 1));
      taken.fences.emplace_back(PQgetvalue(rows, row, 2));
      place_ = std::string("{\"") + PQgetvalue(rows, row, 13) + "\":[" + PQgetvalue(rows, row, 7) + "," +
               taken.ids.back() + "]}";
    }
    if (is_behind && taken.ids.empty()) {
      full_look_after_ = {};
      return turn({}, most);
    }
    return taken;
  }
  void fill(long count) override { line.run("fill", {id_, incarnation_, std::to_string(count)}); }
  void listen() override { line.run("listen"); }
  void wait_for_more() override { line.run("wait", {id_, incarnation_, "true"}); }
  void wake() override { line.send("wake", {id_, incarnation_, "{1}", "{1}"}); }
  void number() override { line.run("number", {"5000"}); }

 private:
  void prepare(const std::string& name, const std::string& function, int many) {
    std::string text = "SELECT * FROM duet." + function + "(";
    for (int i = 1; i <= many; ++i) text += (i > 1 ? ",$" : "$") + std::to_string(i);
    if (is_prepared_) {
      line.prepare(name, text + ")");
    } else {
      line.keep_plain(name, text + ")");
    }
  }

  std::string incarnation_ = random_id();
  std::string id_;
  bool looks_behind_;
  bool is_prepared_;
  std::string place_;
  Clock::time_point full_look_after_{};
};

std::unique_ptr<Queue> open(const Options& options) {
  const std::string conninfo = options.text("conninfo", "");
  if (options.text("queue", "floor") == "floor") return std::make_unique<Floor>(conninfo);
  return std::make_unique<Duet>(conninfo, options.has("behind"), !options.has("plain"));
}

/// Runs beside a load until it is over.
class Numbering {
 public:
  explicit Numbering(const Options& options) {
    if (!options.has("number")) return;
    thread_ = std::thread([this, queue = std::shared_ptr<Queue>(open(options))] {
      for (; !over_; std::this_thread::sleep_for(std::chrono::milliseconds(20))) queue->number();
    });
  }
  Numbering(const Numbering&) = delete;
  Numbering& operator=(const Numbering&) = delete;
  ~Numbering() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

struct Effort {
  double time;
  double server_cpu;  // of these connections
};

Effort together(long clients, const Options& options, const std::function<void(Queue&)>& work) {
  std::vector<std::unique_ptr<Queue>> queues;
  for (long i = 0; i < clients; ++i) queues.push_back(open(options));
  const Numbering numbering(options);
  double cpu = 0;
  for (const auto& queue : queues) cpu -= queue->line.server_cpu();
  const auto start = Clock::now();
  std::vector<std::thread> threads;
  for (auto& queue : queues) threads.emplace_back([&work, &queue] { work(*queue); });
  for (std::thread& thread : threads) thread.join();
  const double time = seconds_since(start);
  for (const auto& queue : queues) cpu += queue->line.server_cpu();
  return {time, cpu};
}

void tell_rate(const Options& options, long done, Effort effort) {
  const auto many = static_cast<double>(std::max(done, 1L));
  std::printf("{\"load\":\"%s\",\"batch\":%ld,\"clients\":%ld,\"done\":%ld,\"rate\":%.1f,\"server_us\":%.1f}\n",
              options.text("load", "").c_str(), options.number("batch", 1), options.number("clients", 1), done,
              many / effort.time, effort.server_cpu * 1e6 / many);
}

void submit(const Options& options) {
  const long batch = options.number("batch", 1);
  const long count = options.number("count", 1000);
  std::atomic<long> left = count;
  const Effort effort = together(options.number("clients", 1), options, [&](Queue& queue) {
    while ((left -= batch) >= 0) {
      queue.submit(static_cast<std::size_t>(batch));
      queue.line.commit();
      if (options.has("wake")) {
        queue.wake();
        queue.line.commit();
      }
      queue.line.answers();
    }
  });
  tell_rate(options, count, effort);
}

void drain(const Options& options) {
  const long batch = options.number("batch", 1);
  if (options.number("count", 1000) > 0) open(options)->fill(options.number("count", 1000));
  std::atomic<long> done = 0;
  const auto end = Clock::now() + std::chrono::seconds(options.number("seconds", 100000));
  const Effort effort = together(options.number("clients", 1), options, [&](Queue& queue) {
    Taken taken;
    do {
      const std::size_t ended = taken.ids.size();
      taken = queue.turn(taken, batch);
      done += static_cast<long>(ended);
    } while (!taken.ids.empty() && Clock::now() < end);
  });
  tell_rate(options, done, effort);
}

void latency(const Options& options) {
  std::mutex mutex;
  std::condition_variable claimed;
  long turns = 0;
  Clock::time_point at;
  std::atomic<bool> over = false;
  std::atomic<bool> ready = false;
  std::thread worker([&] {
    const std::unique_ptr<Queue> queue = open(options);
    queue->listen();
    queue->wait_for_more();
    ready = true;
    while (!over) {
      if (!queue->line.is_notified(200)) continue;
      const Taken taken = queue->turn({}, 1);
      const auto now = Clock::now();
      if (taken.ids.empty()) continue;
      queue->turn(taken, 0);
      queue->wait_for_more();
      const std::lock_guard lock(mutex);
      at = now;
      ++turns;
      claimed.notify_one();
    }
  });
  const std::unique_ptr<Queue> queue = open(options);
  while (!ready) std::this_thread::yield();
  std::vector<double> times;
  for (long i = 0; i < options.number("count", 300); ++i) {
    const auto start = Clock::now();
    queue->submit(1);
    if (options.text("queue", "floor") != "floor") queue->line.commit();
    queue->wake();
    queue->line.commit();
    queue->line.answers();
    std::unique_lock lock(mutex);
    claimed.wait(lock, [&] { return turns > i; });
    times.push_back(std::chrono::duration<double, std::milli>(at - start).count());
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + 700 * (i % 5)));
  }
  over = true;
  worker.join();
  std::sort(times.begin(), times.end());
  std::printf("{\"load\":\"latency\",\"p50_ms\":%.3f,\"p99_ms\":%.3f}\n", times[times.size() / 2],
              times[times.size() * 99 / 100]);
}

Options read(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = std::string(words[i]).substr(2);
    const bool has_value = i + 1 < count && std::string(words[i + 1]).substr(0, 2) != "--";
    options.given[name] = has_value ? words[++i] : "";
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  try {
    const Options options = read(count, words);
    const std::string load = options.text("load", "");
    if (load == "submit")
      submit(options);
    else if (load == "drain")
      drain(options);
    else if (load == "latency")
      latency(options);
    else
      throw std::runtime_error("--load submit, drain or latency");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "queue_rate: %s\n", error.what());
    return 1;
  }
}
