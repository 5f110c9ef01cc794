// Drives one server and prints what it measured as one line of JSON. `load` without arguments lists the options.

#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>

#include "load_process.h"
#include "load_stream.h"
#include "load_wire.h"

namespace load {
namespace {

constexpr const char* usage = R"(usage: load [OPTION VALUE]… -- SERVER [ARGUMENT]…
  --mode window|connect|startup   keep requests in flight; connect, ask, close; start, ask, end       (window)
  --unix PATH, --tcp PORT         the server listens there, a message a line; else it is on stdio, LSP framing
  --wire lsp|lines|resp|websocket|http|turned
                                  another framing; resp sends PING, http POSTs to /rpc
  --token TEXT                    for /ws and /rpc
  --tls FILE                      over TLS, with the key, certificate and CA in FILE
  --rate N                        of connect: so many a second at most                                (no bound)
  --method NAME                   (ping); id: a ping whose padding is in its id
  --pad BYTES                     of params, sent back by a method that echoes, or of the id          (0)
  --window N                      requests in flight on each connection, written at once              (1)
  --connections N                                                                                     (1)
  --requests N, --seconds S       whichever ends first                                    (100000000, 0.3)
  --warmup N                      requests before that                                                (2000)
  --repeats N                     of a start                                                          (10)
  --settle S                      wait so long at most for memory to be given back                    (0)
  --cpu N                         the core that both sides share                                      (any)
)";

struct Settings {
  std::string mode = "window";
  Place place;
  std::string token;
  double rate = 0;
  std::optional<Wire> wire_asked;
  std::string method = "ping";
  std::size_t pad = 0;
  std::size_t window = 1;
  std::size_t connections = 1;
  std::uint64_t requests = 100'000'000;
  double seconds = 0.3;
  std::uint64_t warmup = 2000;
  std::size_t repeats = 10;
  double settle = 0;
  int cpu = -1;
  std::vector<char*> command;

  bool on_stdio() const { return !place.is_socket(); }
  Wire wire() const { return wire_asked.value_or(on_stdio() ? Wire::lsp : Wire::lines); }
};

/// How much a phase may still send.
struct Budget {
  std::uint64_t requests;
  std::uint64_t deadline;
  bool is_open(std::uint64_t now) const { return requests > 0 && now < deadline; }
};

Budget budget(std::uint64_t requests, double seconds) {
  return {requests, now_ns() + static_cast<std::uint64_t>(seconds * 1e9)};
}

/// One connection: a window of requests is written at once, and again when all of it is answered, in order.
class Conversation {
 public:
  Conversation(const Request& request, std::size_t window, const Stream& stream)
      : request_(request), window_(window), stream_(&stream), replies_(request.wire) {
    for (std::size_t i = 0; i < window; ++i) out_ += request.bytes;
  }

  void move_to(const Stream& stream) {
    stream_ = &stream;
    replies_.forget();
  }

  const Stream& stream() const { return *stream_; }
  bool has_unsent() const { return sent_ < to_send_; }
  bool is_idle() const { return in_flight_ == 0; }

  void fill(Budget& left) {
    if (in_flight_ > 0) return;
    const std::uint64_t now = now_ns();
    if (!left.is_open(now)) return;
    in_flight_ = std::min<std::uint64_t>(window_, left.requests);
    left.requests -= in_flight_;
    for (std::size_t i = 0; i < in_flight_; ++i) {
      request_.number(out_.data() + i * request_.bytes.size(), next_);
      next_.step();
    }
    sent_ = 0;
    to_send_ = in_flight_ * request_.bytes.size();
    sent_at_ = now;
    flush();
  }

  void flush() {
    while (has_unsent()) {
      const ssize_t count = stream_->put(out_.data() + sent_, to_send_ - sent_);
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0) fail("write to the server");
      sent_ += static_cast<std::size_t>(count);
    }
  }

  /// One read, which waits for something to come.
  void receive(std::vector<std::uint32_t>& latencies) {
    const std::span<char> room = replies_.room();
    const ssize_t count = stream_->get(room);
    if (count < 0) fail("read from the server");
    if (count == 0) throw std::runtime_error("the server ended the conversation");
    replies_.commit(static_cast<std::size_t>(count));
    const std::uint64_t now = now_ns();
    while (const std::optional<std::string_view> reply = replies_.next()) {
      if (in_flight_ == 0 || !request_.is_answered_by(*reply, oldest_)) {
        throw std::runtime_error("not the answer: " + std::string(reply->substr(0, 200)));
      }
      oldest_.step();
      --in_flight_;
      latencies.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(now - sent_at_, UINT32_MAX)));
    }
  }

  void wait_and_move(std::vector<std::uint32_t>& latencies) {
    if (!has_unsent()) return receive(latencies);
    std::array<pollfd, 2> ready{{{stream_->read_fd(), POLLIN, 0}, {stream_->write_fd(), POLLOUT, 0}}};
    poll(ready.data(), ready.size(), -1);
    if (ready[1].revents != 0) flush();
    if (ready[0].revents != 0) receive(latencies);
  }

 private:
  const Request& request_;
  std::size_t window_;
  const Stream* stream_;
  Replies replies_;
  std::string out_;  // the window's requests
  std::size_t sent_ = 0;
  std::size_t to_send_ = 0;
  std::size_t in_flight_ = 0;
  std::uint64_t sent_at_ = 0;
  Serial next_;
  Serial oldest_;
};

/// The server and the connections to it, each of which has had one answer to a small request.
class Session {
 public:
  Session(const Settings& settings, const Request& request) : server_(settings.command, settings.on_stdio()) {
    if (!settings.place.identity.empty()) tls_.emplace(settings.place.identity);
    const Request small(settings.wire(), settings.method, std::min<std::size_t>(settings.pad, 1), settings.token);
    for (std::size_t i = 0; i < settings.connections; ++i) {
      streams_.push_back(settings.on_stdio() ? std::make_unique<Stream>(server_.from(), server_.to())
                                             : connect(settings.place, 20));
      ask_once(Conversation(small, 1, *streams_.back()));
      conversations_.push_back(std::make_unique<Conversation>(request, settings.window, *streams_.back()));
    }
  }

  std::unique_ptr<Stream> connect(const Place& place, double seconds) const {
    return std::make_unique<Stream>(place, tls_ ? &*tls_ : nullptr, seconds);
  }
  Process& server() { return server_; }
  Conversation& first() { return *conversations_.front(); }

  void run(Budget left, std::vector<std::uint32_t>& latencies) {
    conversations_.size() == 1 ? run_one(left, latencies) : run_many(left, latencies);
  }

  void hang_up() { streams_.clear(); }
  double stop() {
    hang_up();
    return server_.stop();
  }

 private:
  static void ask_once(Conversation conversation) {
    std::vector<std::uint32_t> ignored;
    Budget one = budget(1, 60);
    conversation.fill(one);
    while (!conversation.is_idle()) conversation.wait_and_move(ignored);
  }

  // A client with one connection needs no epoll: what comes next can only be an answer.
  void run_one(Budget left, std::vector<std::uint32_t>& latencies) {
    for (first().fill(left); !first().is_idle(); first().fill(left)) first().wait_and_move(latencies);
  }

  void run_many(Budget left, std::vector<std::uint32_t>& latencies) {
    const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
    std::size_t busy = 0;
    for (const auto& conversation : conversations_) {
      epoll_event event{EPOLLIN, {.ptr = conversation.get()}};
      if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, conversation->stream().read_fd(), &event) != 0) fail("epoll_ctl");
      conversation->fill(left);
      if (conversation->has_unsent()) throw std::runtime_error("the window does not fit a socket's buffer");
      busy += conversation->is_idle() ? 0 : 1;
    }
    std::array<epoll_event, 256> events;
    while (busy > 0) {
      const int count = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), -1);
      for (const epoll_event* event = events.data(); event < events.data() + count; ++event) {
        auto& conversation = *static_cast<Conversation*>(event->data.ptr);
        do {
          conversation.receive(latencies);
        } while (conversation.stream().has_more());
        conversation.fill(left);
        if (conversation.is_idle()) --busy;
      }
    }
  }

  Process server_;
  std::optional<Tls> tls_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Conversation>> conversations_;
};

double quantile(std::vector<std::uint32_t>& values, double part) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// Connect, ask, read the answer, close; the latency is that of the whole turn.
void run_connecting(const Settings& settings, Session& session, Budget left, std::vector<std::uint32_t>& latencies) {
  const std::uint64_t pause = settings.rate > 0 ? static_cast<std::uint64_t>(1e9 / settings.rate) : 0;
  std::vector<std::uint32_t> answers;
  session.hang_up();  // a server may talk to one client at a time
  for (std::uint64_t begin = now_ns(); left.is_open(begin); begin = std::max(begin + pause, now_ns())) {
    while (now_ns() < begin) sleep_ms(1);
    {
      const std::unique_ptr<Stream> stream = session.connect(settings.place, 1);
      session.first().move_to(*stream);
      Budget one{1, UINT64_MAX};
      session.first().fill(one);
      while (!session.first().is_idle()) session.first().wait_and_move(answers);
    }
    --left.requests;
    latencies.push_back(static_cast<std::uint32_t>(now_ns() - begin));
  }
}

/// How long it took, in milliseconds, until no more than a MiB was held beyond what was held when idle; -1: too long.
double wait_for_memory(const Process& server, long idle_kib, double seconds) {
  const std::uint64_t begin = now_ns();
  const auto waited = [begin] { return static_cast<double>(now_ns() - begin) / 1e6; };
  for (;;) {
    if (server.rss_kib() <= idle_kib + 1024) return waited();
    if (waited() >= seconds * 1000) return -1;
    sleep_ms(20);
  }
}

void measure(const Settings& settings) {
  const Request request(settings.wire(), settings.method, settings.pad, settings.token);
  Session session(settings, request);
  const long idle = session.server().rss_kib();

  std::vector<std::uint32_t> latencies;
  latencies.reserve(4'000'000);
  const auto run = [&](const Budget& left) {
    settings.mode == "connect" ? run_connecting(settings, session, left, latencies) : session.run(left, latencies);
  };
  run(budget(settings.warmup, 10));
  latencies.clear();
  const std::uint64_t cpu_before = session.server().cpu_ns();
  const long faults_before = session.server().page_faults();
  const std::uint64_t begin = now_ns();
  run(budget(settings.requests, settings.seconds));
  const double wall = static_cast<double>(now_ns() - begin) / 1e9;
  const std::uint64_t cpu = session.server().cpu_ns() - cpu_before;
  const auto faults = static_cast<double>(session.server().page_faults() - faults_before);

  const long peak = session.server().peak_kib();
  const double given_back = wait_for_memory(session.server(), idle, settings.settle);
  const long after = session.server().rss_kib();
  session.stop();
  const auto count = static_cast<double>(latencies.size());
  std::printf(R"({"replies":%zu,"per_s":%.1f,"p50_us":%.3f,"p99_us":%.3f,"mb_s":%.1f,"server_cpu_us":%.3f,)"
              R"("server_faults":%.1f,"rss_idle_kib":%ld,"rss_peak_kib":%ld,"rss_after_kib":%ld,"given_back_ms":%.0f})"
              "\n",
              latencies.size(), count / wall, quantile(latencies, 0.5) / 1e3, quantile(latencies, 0.99) / 1e3,
              count * static_cast<double>(request.bytes.size()) / wall / 1e6, static_cast<double>(cpu) / 1e3 / count,
              faults / count, idle, peak, after, given_back);
}

void measure_start(const Settings& settings) {
  const Request request(settings.wire(), settings.method, settings.pad, settings.token);
  std::vector<std::uint32_t> first_replies;
  std::vector<std::uint32_t> ends;
  long idle = 0;
  for (std::size_t i = 0; i < settings.repeats; ++i) {
    if (!settings.place.unix_path.empty()) unlink(settings.place.unix_path.c_str());
    const std::uint64_t begin = now_ns();
    Session session(settings, request);
    first_replies.push_back(static_cast<std::uint32_t>(now_ns() - begin));
    idle = session.server().rss_kib();
    ends.push_back(static_cast<std::uint32_t>(session.stop() * 1e6));
  }
  std::printf(R"({"repeats":%zu,"first_reply_ms":%.3f,"end_ms":%.3f,"rss_idle_kib":%ld})"
              "\n",
              settings.repeats, quantile(first_replies, 0.5) / 1e6, quantile(ends, 0.5) / 1e6, idle);
}

Wire wire_named(std::string_view name) {
  if (name == "lsp") return Wire::lsp;
  if (name == "lines") return Wire::lines;
  if (name == "resp") return Wire::resp;
  if (name == "websocket") return Wire::websocket;
  if (name == "http") return Wire::http;
  if (name == "turned") return Wire::turned;
  throw std::runtime_error("no such framing: " + std::string(name));
}

Settings read_settings(int argc, char** argv) {
  Settings s;
  const std::map<std::string_view, std::function<void(const char*)>> options{
      {"--mode", [&](const char* value) { s.mode = value; }},
      {"--unix", [&](const char* value) { s.place.unix_path = value; }},
      {"--tcp", [&](const char* value) { s.place.tcp_port = std::stoi(value); }},
      {"--token", [&](const char* value) { s.token = value; }},
      {"--tls", [&](const char* value) { s.place.identity = value; }},
      {"--rate", [&](const char* value) { s.rate = std::stod(value); }},
      {"--wire", [&](const char* value) { s.wire_asked = wire_named(value); }},
      {"--method", [&](const char* value) { s.method = value; }},
      {"--pad", [&](const char* value) { s.pad = std::stoull(value); }},
      {"--window", [&](const char* value) { s.window = std::stoull(value); }},
      {"--connections", [&](const char* value) { s.connections = std::stoull(value); }},
      {"--requests", [&](const char* value) { s.requests = std::stoull(value); }},
      {"--seconds", [&](const char* value) { s.seconds = std::stod(value); }},
      {"--warmup", [&](const char* value) { s.warmup = std::stoull(value); }},
      {"--repeats", [&](const char* value) { s.repeats = std::stoull(value); }},
      {"--settle", [&](const char* value) { s.settle = std::stod(value); }},
      {"--cpu", [&](const char* value) { s.cpu = std::stoi(value); }},
  };
  int at = 1;
  for (; at + 1 < argc && std::string_view(argv[at]) != "--"; at += 2) {
    const auto option = options.find(argv[at]);
    if (option == options.end()) throw std::runtime_error("no such option: " + std::string(argv[at]));
    option->second(argv[at + 1]);
  }
  for (++at; at < argc; ++at) s.command.push_back(argv[at]);
  if (s.command.empty()) throw std::runtime_error(usage);
  if (s.wire() == Wire::websocket && s.place.tcp_port != 0) s.place.opening = websocket_opening(s.token);
  if (s.mode != "window" && s.mode != "connect" && s.mode != "startup") throw std::runtime_error("no such mode");
  return s;
}

// The server inherits the core, and the priority that this program was started with.
void stay_on(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

}  // namespace
}  // namespace load

int main(int argc, char** argv) {
  try {
    const load::Settings settings = load::read_settings(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    load::stay_on(settings.cpu);
    settings.mode == "startup" ? load::measure_start(settings) : load::measure(settings);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "load: %s\n", error.what());
    return 1;
  }
}
