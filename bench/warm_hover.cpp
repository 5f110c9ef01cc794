// Asks clangd for the same hover in turns: directly, and through a daemon. Prints one line of JSON.
//
// usage: warm_hover DUET_RPC [ROUNDS]

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "duet/base/fd.h"
#include "process/launch.h"

namespace {

using namespace duet;
namespace fs = std::filesystem;

constexpr int per_round = 50;
constexpr int warm_up = 100;

// Line 4 of the file has text that is not ASCII before the call that is asked about.
constexpr const char* source = R"(#include <string>
/// Counts the letters of a name.
int greet(const std::string& name) { return static_cast<int>(name.size()); }
int main() { const char* text = "ää 你好"; return greet(text); }
)";
constexpr int line = 4;
constexpr int column = 49;
constexpr int bytes_before = 54;

void write_all(int fd, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    sent += static_cast<std::size_t>(
        base::check_call(static_cast<int>(write(fd, text.data() + sent, text.size() - sent)), "write"));
  }
}

// Reads messages, by frames or by lines.
class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}

  std::string frame() {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) more();
    const std::size_t size = std::stoul(buffer_.substr(buffer_.find(':') + 1));
    while (buffer_.size() < end + 4 + size) more();
    std::string body = buffer_.substr(end + 4, size);
    buffer_.erase(0, end + 4 + size);
    return body;
  }
  std::string text_line() {
    std::size_t end = 0;
    while ((end = buffer_.find('\n')) == std::string::npos) more();
    std::string body = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return body;
  }

 private:
  void more() {
    char room[65536];
    const ssize_t count = read(fd_, room, sizeof room);
    if (count <= 0) throw std::runtime_error("the other side has gone");
    buffer_.append(room, static_cast<std::size_t>(count));
  }

  int fd_;
  std::string buffer_;
};

class Direct {
 public:
  explicit Direct(const fs::path& file) : uri_("file://" + file.string()) {
    base::Pipe in = base::make_pipe();
    base::Pipe out = base::make_pipe();
    clangd_ = process::launch({.arguments = {"clangd", "--log=error"},  // as the daemon runs it
                               .environment = process::current_environment(),
                               .directory = file.parent_path(),
                               .standard = {in.read_end.get(), out.write_end.get(), -1}});
    to_ = std::move(in.write_end);
    from_ = std::move(out.read_end);
    reader_ = Reader(from_.get());
    send(
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{"offsetEncoding":["utf-8"],"textDocument":{"hover":{"contentFormat":["markdown"]}}}}})");
    answer(0);
    send(R"({"jsonrpc":"2.0","method":"initialized","params":{}})");
    std::string text;
    for (const char* at = source; *at != '\0'; ++at) {
      text += *at == '\n' ? "\\n" : *at == '"' ? "\\\"" : std::string(1, *at);
    }
    send(R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":")" + uri_ +
         R"(","languageId":"cpp","version":1,"text":")" + text + R"("}}})");
  }
  ~Direct() {
    kill(clangd_.pid, SIGKILL);
    process::reap(clangd_);
  }

  std::string hover() {
    send(R"({"jsonrpc":"2.0","id":)" + std::to_string(++id_) +
         R"(,"method":"textDocument/hover","params":{"textDocument":{"uri":")" + uri_ + R"("},"position":{"line":)" +
         std::to_string(line - 1) + R"(,"character":)" + std::to_string(bytes_before) + "}}}");
    return answer(id_);
  }

 private:
  void send(const std::string& body) {
    write_all(to_.get(), "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  std::string answer(int id) {
    const std::string wanted = "\"id\":" + std::to_string(id) + ',';
    for (;;) {
      std::string body = reader_.frame();
      if (body.find(wanted) != std::string::npos) return body;
    }
  }

  std::string uri_;
  process::Child clangd_;
  base::Fd to_;
  base::Fd from_;
  Reader reader_{-1};
  int id_ = 0;
};

class ThroughDaemon {
 public:
  ThroughDaemon(std::string program, const fs::path& file) : program_(std::move(program)), file_(file) {
    run("start");
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    (file.parent_path() / ".aiwg/daemon/daemon.sock").string().copy(address.sun_path, sizeof address.sun_path - 1);
    socket_.reset(base::check_call(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    base::check_call(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
    reader_ = Reader(socket_.get());
  }
  ~ThroughDaemon() { run("stop"); }

  std::string hover() {
    write_all(socket_.get(), R"({"jsonrpc":"2.0","id":1,"method":"lsp.hover","params":{"file":")" + file_.string() +
                                 R"(","line":)" + std::to_string(line) + R"(,"column":)" + std::to_string(column) +
                                 "}}\n");
    return reader_.text_line();
  }

 private:
  void run(const char* what) {
    const process::Child child =
        process::launch({.arguments = {program_, "daemon", what, "--project", file_.parent_path()},
                         .environment = process::current_environment()});
    process::reap(child);
  }

  std::string program_;
  fs::path file_;
  base::Fd socket_;
  Reader reader_{-1};
};

template <typename Asker>
void ask(Asker& asker, int times, std::vector<double>& out) {
  for (int i = 0; i < times; ++i) {
    const auto before = std::chrono::steady_clock::now();
    const std::string answer = asker.hover();
    out.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count());
    if (answer.find("Counts the letters") == std::string::npos) throw std::runtime_error("not the hover: " + answer);
  }
}

double part(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void measure(const std::string& program, int rounds) {
  std::string folder = (fs::temp_directory_path() / "duet-hover-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder");
  fs::create_directory(folder + "/.git");
  const fs::path file = fs::path(folder) / "main.cpp";
  std::ofstream(file) << source;
  std::vector<double> warm;
  std::vector<double> direct_times;
  std::vector<double> daemon_times;
  {
    Direct direct(file);
    ThroughDaemon daemon(program, file);
    ask(direct, warm_up, warm);
    ask(daemon, warm_up, warm);
    for (int round = 0; round < rounds; ++round) {
      if (round % 2 == 0) ask(direct, per_round, direct_times);
      ask(daemon, per_round, daemon_times);
      if (round % 2 == 1) ask(direct, per_round, direct_times);
    }
  }
  fs::remove_all(folder);
  const double direct_p50 = part(direct_times, 0.5);
  const double daemon_p50 = part(daemon_times, 0.5);
  std::printf(R"({"direct_p50_us":%.0f,"direct_p99_us":%.0f,"daemon_p50_us":%.0f,"daemon_p99_us":%.0f,"ratio":%.2f})"
              "\n",
              direct_p50, part(direct_times, 0.99), daemon_p50, part(daemon_times, 0.99), daemon_p50 / direct_p50);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::runtime_error("usage: warm_hover DUET_RPC [ROUNDS]");
    signal(SIGPIPE, SIG_IGN);
    measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 20);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warm_hover: %s\n", error.what());
    return 1;
  }
}
