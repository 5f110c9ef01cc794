// store_rate: how many tasks a second the store makes durable, one at a time and 64 at a time, against appending a
// record to a file and syncing it. The three take turns, a few records each, since the speed of a disk changes from one
// moment to the next; the medians of their ratios are what counts.
//   store_rate FOLDER [TURNS]

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"
#include "task/store.h"
#include "task/transition.h"

namespace {

using namespace duet;
using Seconds = std::chrono::duration<double>;

template <typename Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return Seconds(std::chrono::steady_clock::now() - begin).count();
}

base::Fd open_in(const std::string& path, int flags) {
  return base::Fd(base::check_call(open(path.c_str(), flags | O_CLOEXEC, 0600), "open"));
}

void append(int file, int count) {
  const std::string record(128, 'r');
  for (int i = 0; i < count; ++i) {
    if (write(file, record.data(), record.size()) != static_cast<ssize_t>(record.size())) std::abort();
    base::check_call(fdatasync(file), "fdatasync");
  }
}

/// Puts tasks into a store.
class Submitter {
 public:
  explicit Submitter(int folder)
      : store_(loop_, std::make_unique<task::StoreFolder>(folder, task::StoreFolder::Options{.lays_out_log = true})) {
    id_ = store_.read([](task::StoreReader& tasks) { return tasks.newest(); }).value();
  }

  /// `count` tasks, `width` of them on their way at any time.
  void submit(int count, int width) {
    left_ = count;
    for (int i = 0; i < width; ++i) submit_one();
    loop_.run();
  }

 private:
  void submit_one() {
    if (left_ == 0) return;
    --left_;
    ++waiting_;
    const task::Submission submission{.prompt = "Fix the tests in src and tell me what was wrong with them"};
    task::NewTask task{.id = ++id_,
                       .prompt = submission.prompt,
                       .agent = "claude",
                       .created_at = loop_.clock().utc(),
                       .body = task::to_body(submission)};
    store_.write({.apply =
                      [task = std::move(task)](task::StoreWriter& writer) {
                        writer.insert(task);
                        task::tell_queued(writer, task);
                      },
                  .done =
                      [this](bool kept) {
                        if (!kept) std::abort();
                        --waiting_;
                        submit_one();
                        if (waiting_ == 0) loop_.stop();
                      }});
  }

  transport::Loop loop_;
  task::Store store_;
  task::TaskId id_ = 0;
  int left_ = 0;
  int waiting_ = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string folder = argv[1];
  const int turns = argc > 2 ? std::atoi(argv[2]) : 100;
  const base::Fd file = open_in(folder + "/append", O_CREAT | O_WRONLY | O_APPEND);
  const base::Fd directory = open_in(folder, O_RDONLY | O_DIRECTORY);
  Submitter submitter(directory.get());
  std::vector<double> appends;
  std::vector<double> ones;
  std::vector<double> manys;
  std::vector<double> one_to_append;
  std::vector<double> many_to_one;
  for (int turn = 0; turn < turns; ++turn) {
    constexpr int few = 10;
    constexpr int many = 640;
    appends.push_back(few / seconds_of([&] { append(file.get(), few); }));
    ones.push_back(few / seconds_of([&] { submitter.submit(few, 1); }));
    manys.push_back(many / seconds_of([&] { submitter.submit(many, 64); }));
    one_to_append.push_back(ones.back() / appends.back());
    many_to_one.push_back(manys.back() / ones.back());
  }
  unlink((folder + "/append").c_str());
  std::printf(
      "{\"append_fdatasync\":%.0f,\"one_by_one\":%.0f,\"64_waiting\":%.0f,\"one_to_append\":%.2f,\"64_to_one\":%.1f}\n",
      median(appends), median(ones), median(manys), median(one_to_append), median(many_to_one));
  return 0;
}
