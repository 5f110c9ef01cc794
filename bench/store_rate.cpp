// store_rate: how many tasks a second the store makes durable, one at a time and 64 at a time, against appending a
// record to a file and syncing it. One JSON line per method and round; the ratios are what counts.
//   store_rate FOLDER [ROUNDS] [SECONDS]

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"
#include "task/store.h"

namespace {

using namespace duet;
using Seconds = std::chrono::duration<double>;

Seconds since(std::chrono::steady_clock::time_point begin) { return std::chrono::steady_clock::now() - begin; }

double appends_per_second(const std::string& folder, Seconds time) {
  const std::string path = folder + "/append";
  const base::Fd file(
      base::check_call(open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600), "open"));
  const std::string record(128, 'r');
  const auto begin = std::chrono::steady_clock::now();
  std::size_t count = 0;
  for (; since(begin) < time; ++count) {
    if (write(file.get(), record.data(), record.size()) != static_cast<ssize_t>(record.size())) std::abort();
    base::check_call(fdatasync(file.get()), "fdatasync");
  }
  unlink(path.c_str());
  return static_cast<double>(count) / since(begin).count();
}

/// Keeps `width` tasks on their way to the disk.
double tasks_per_second(const std::string& folder, int width, Seconds time) {
  const std::string path = folder + "/store";
  std::filesystem::create_directory(path);
  const base::Fd directory(base::check_call(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open"));
  transport::Loop loop;
  task::Store store(loop, directory.get());
  task::TaskId id = store.read([](task::TaskReader& tasks) { return tasks.newest(); });
  std::size_t count = 0;
  int waiting = 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::function<void()> submit = [&] {
    const task::Submission submission{.prompt = "Fix the tests in src and tell me what was wrong with them"};
    task::Task task{.id = ++id, .prompt = submission.prompt, .agent = "claude", .created_at = loop.clock().utc()};
    ++waiting;
    store.insert(std::move(task), submission, task::to_body(submission), [&](bool kept) {
      if (!kept) std::abort();
      ++count;
      --waiting;
      if (since(begin) < time) return submit();
      if (waiting == 0) loop.stop();
    });
  };
  for (int i = 0; i < width; ++i) submit();
  loop.run();
  return static_cast<double>(count) / since(begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string folder = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const Seconds time(argc > 3 ? std::atof(argv[3]) : 1.0);
  for (int round = 0; round < rounds; ++round) {
    const double raw = appends_per_second(folder, time);
    const double one = tasks_per_second(folder, 1, time);
    const double many = tasks_per_second(folder, 64, time);
    std::printf(
        "{\"append_fdatasync\":%.0f,\"one_by_one\":%.0f,\"one_to_append\":%.2f,\"64_waiting\":%.0f,"
        "\"64_to_one\":%.1f}\n",
        raw, one, one / raw, many, many / one);
    std::fflush(stdout);
    std::filesystem::remove_all(folder + "/store");
  }
  return 0;
}
