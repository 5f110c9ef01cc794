// spawn_rate: the limit for whoever runs commands: starts and reaps them, and does nothing else.
//   spawn_rate COUNT SLOTS COMMAND [ARGUMENT…]
// prints the seconds that COUNT of them take, SLOTS at once.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

void reap() {
  if (wait(nullptr) < 0) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int count = std::atoi(argv[1]);
  const int slots = std::atoi(argv[2]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd = 0; fd < 2; ++fd) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  const auto begin = std::chrono::steady_clock::now();
  int running = 0;
  for (int started = 0; started < count; ++started, ++running) {
    if (running == slots) {
      reap();
      --running;
    }
    pid_t pid = 0;
    if (posix_spawnp(&pid, argv[3], &actions, nullptr, argv + 3, environ) != 0) return 1;
  }
  for (; running > 0; --running) reap();
  std::printf("%.6f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}
