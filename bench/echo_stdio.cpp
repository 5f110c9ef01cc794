// The limit for a server on stdin and stdout: what comes in goes out again, nothing is looked at.
// echo_stdio           read, write
// echo_stdio poll      asks poll before every read, as a server does that has other things to wait for
// echo_stdio epoll     the same with epoll

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace {

class Question {
 public:
  explicit Question(std::string_view how) : polls_(how == "poll") {
    if (how != "epoll") return;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{EPOLLIN, {.fd = STDIN_FILENO}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  }

  void ask() const {
    if (polls_) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      poll(&input, 1, -1);
    } else if (epoll_ >= 0) {
      epoll_event event;
      epoll_wait(epoll_, &event, 1, -1);
    }
  }

 private:
  bool polls_;
  int epoll_ = -1;
};

std::array<char, 64 * 1024> buffer;

bool put(std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t written = write(STDOUT_FILENO, buffer.data() + done, count - done);
    if (written < 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const Question question(argc > 1 ? argv[1] : "");
  for (;;) {
    question.ask();
    const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count <= 0) return count == 0 ? 0 : 1;
    if (!put(static_cast<std::size_t>(count))) return 1;
  }
}
