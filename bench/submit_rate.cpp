// submit_rate: how many tasks a second a daemon acknowledges through its socket, one at a time and with 64 waiting,
// against appending a record to a file and syncing it. They take turns, a few records each, since the speed of a disk
// changes from one moment to the next; the medians of their ratios to the append beside them are what counts.
//   submit_rate FOLDER TURNS SOCKET…      FOLDER is on the disk that the daemons' stores are on

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"

namespace {

using namespace duet;

// Of the events that everybody is told by default it wants none.
constexpr std::string_view subscribe =
    R"({"jsonrpc":"2.0","id":1,"method":"events.subscribe","params":{"kinds":["daemonStopping"]}})"
    "\n";
constexpr std::string_view submit =
    R"({"jsonrpc":"2.0","id":1,"method":"task.submit","params":{"prompt":"Fix the tests in src and tell me why"}})"
    "\n";

void append(int file, int count) {
  const std::string record(128, 'r');
  for (int i = 0; i < count; ++i) {
    base::check_call(base::write_all(file, record) ? 0 : -1, "write");
    base::check_call(fdatasync(file), "fdatasync");
  }
}

class Client {
 public:
  explicit Client(const char* path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    base::check_call(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), path);
    send(1, subscribe);
    answers();
  }

  /// `count` tasks, `width` of them without an answer at any time.
  void run(int count, int width) {
    int sent = std::min(width, count);
    send(sent, submit);
    for (int answered = 0; answered < count;) {
      const int now = answers();
      answered += now;
      const int more = std::min(now, count - sent);
      sent += more;
      send(more, submit);
    }
  }

 private:
  void send(int count, std::string_view request) {
    std::string text;
    for (int i = 0; i < count; ++i) text += request;
    base::check_call(base::write_all(fd_.get(), text) ? 0 : -1, "write");
  }

  int answers() {
    const auto got = base::check_call(static_cast<int>(read(fd_.get(), buffer_.data(), buffer_.size())), "read");
    const std::string_view text(buffer_.data(), static_cast<std::size_t>(got));
    if (text.empty() || text.find("\"error\"") != text.npos) {
      std::fprintf(stderr, "the daemon refused: %.*s\n", static_cast<int>(got), buffer_.data());
      std::exit(1);
    }
    return static_cast<int>(std::ranges::count(text, '\n'));
  }

  base::Fd fd_;
  std::array<char, 65536> buffer_{};
};

template <typename Work>
double rate(int count, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return count / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Rates {
  std::vector<double> ones, manys, one_to_append, many_to_append;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string path = std::string(argv[1]) + "/append";
  const base::Fd file(base::check_call(open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600), "open"));
  std::vector<Client> clients;
  for (int i = 3; i < argc; ++i) clients.emplace_back(argv[i]);
  std::vector<Rates> all(clients.size());
  std::vector<double> appends;
  const int turns = std::atoi(argv[2]);
  constexpr int few = 20;
  constexpr int many = 640;
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      Rates& rates = all[i];
      appends.push_back(rate(few, [&] { append(file.get(), few); }));
      rates.ones.push_back(rate(few, [&] { clients[i].run(few, 1); }));
      rates.one_to_append.push_back(rates.ones.back() / appends.back());
    }
  }
  // After that: many at once spread client and daemon over two cores, and then each wakes a sleeping core for the
  // other.
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const double append_now = rate(few, [&] { append(file.get(), few); });
      all[i].manys.push_back(rate(many, [&] { clients[i].run(many, 64); }));
      all[i].many_to_append.push_back(all[i].manys.back() / append_now);
    }
  }
  unlink(path.c_str());
  std::printf("append + fdatasync        %8.0f a second\n", median(appends));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Rates& rates = all[i];
    std::printf("daemon %zu, one by one      %8.0f a second   %5.2f of append + fdatasync\n", i + 1, median(rates.ones),
                median(rates.one_to_append));
    std::printf("daemon %zu, 64 waiting      %8.0f a second   %5.1f of one by one\n", i + 1, median(rates.manys),
                median(rates.many_to_append) / median(rates.one_to_append));
  }
}
