#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "simulate/cluster_simulation.h"
#include "simulate/simulation.h"

namespace {

using duet::simulate::ClusterSimulation;
using duet::simulate::Simulation;
using duet::simulate::SimulationOptions;
using duet::simulate::Verdict;

constexpr std::uint64_t usual_steps = 2000;
constexpr std::uint64_t steps_of_cluster = 20'000;  // a worker's lease has many of them

struct Arguments {
  std::uint64_t steps = 0;
  std::uint64_t from = 0;  // the first seed
  std::uint64_t to = 0;    // the last one; 0: as many as there is time for
  double seconds = 0;
  unsigned workers = 1;
  bool one = false;      // --seed: that one, with its trace
  bool disk = false;     // --disk: and with what is done to the disk, or to the database
  bool cluster = false;  // --cluster: the world of daemons that share a queue
};

Verdict run(const Arguments& arguments, const SimulationOptions& options) {
  if (arguments.cluster) return ClusterSimulation(options).run();
  return Simulation(options).run();
}

struct Sums {
  std::uint64_t seeds = 0;
  std::uint64_t steps = 0;
  std::uint64_t tasks = 0;
  std::uint64_t lives = 0;
  std::uint64_t cuts = 0;
  double hours = 0;
};

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

std::string again(const Arguments& arguments, std::uint64_t seed) {
  return std::string("again, with all that happened: ./dev simulate ") + (arguments.cluster ? "--cluster " : "") +
         "--seed " + std::to_string(seed) + " --steps " + std::to_string(arguments.steps);
}

void print_failure(const Arguments& arguments, std::uint64_t seed, const Verdict& verdict, bool with_trace) {
  if (with_trace) {
    for (const std::string& line : verdict.last) std::printf("  %s\n", line.c_str());
  }
  std::printf("seed %" PRIu64 ", step %" PRIu64 ": %s\n%s\n", seed, verdict.step, verdict.violation->c_str(),
              again(arguments, seed).c_str());
}

int run_one(const Arguments& arguments) {
  const Verdict verdict = run(arguments, {arguments.from, arguments.steps, true, arguments.disk});
  std::printf("digest %s\n", duet::simulate::hex(verdict.digest).c_str());
  if (!verdict.violation) return 0;
  print_failure(arguments, arguments.from, verdict, false);
  return 1;
}

// Every so many-th seed; `current` is the one that it is at.
int work(const Arguments& arguments, unsigned worker, std::uint64_t& current) {
  const auto begun = std::chrono::steady_clock::now();
  Sums sums;
  std::uint64_t digests = 0;
  for (std::uint64_t seed = arguments.from + worker;; seed += arguments.workers) {
    if (arguments.to > 0 && seed > arguments.to) break;
    if (arguments.seconds > 0 && seconds_since(begun) > arguments.seconds) break;
    current = seed;
    const Verdict verdict = run(arguments, {.seed = seed, .steps = arguments.steps});
    ++sums.seeds;
    sums.steps += verdict.step;
    sums.tasks += verdict.tasks;
    sums.lives += verdict.lives;
    sums.cuts += verdict.cuts;
    sums.hours += std::chrono::duration<double>(verdict.simulated).count() / 3600;
    digests = digests * 31 + verdict.digest;
    if (!verdict.violation) continue;
    print_failure(arguments, seed, verdict, true);
    return 1;
  }
  const double took = seconds_since(begun);
  std::printf("seeds %" PRIu64 " from %" PRIu64 ", steps %" PRIu64
              " (%.0f/s), simulated hours %.0f (%.0f/s), tasks %" PRIu64 ", lives of the daemon %" PRIu64
              ", %s %" PRIu64 ", digest %s\n",
              sums.seeds, arguments.from + worker, sums.steps, static_cast<double>(sums.steps) / took, sums.hours,
              sums.hours / took, sums.tasks, sums.lives, arguments.cluster ? "faults" : "power cuts", sums.cuts,
              duet::simulate::hex(digests).c_str());
  return 0;
}

// A crash says nothing by itself: the parent of who crashed names the seed.
void print_crash(const Arguments& arguments, int signal, std::uint64_t seed) {
  std::printf("seed %" PRIu64 ": the simulation was ended by signal %d\n%s\n", seed, signal,
              again(arguments, seed).c_str());
}

int run_all(const Arguments& arguments) {
  // Which seed each worker is at; they write it, and it outlives them.
  const std::size_t bytes = arguments.workers * sizeof(std::uint64_t);
  void* const shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* const seeds = static_cast<std::uint64_t*>(shared);
  std::map<pid_t, unsigned> workers;
  for (unsigned worker = 0; worker < arguments.workers; ++worker) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      const int code = work(arguments, worker, seeds[worker]);
      std::fflush(stdout);
      _exit(code);
    }
    workers[pid] = worker;
  }
  int failed = 0;
  int status = 0;
  for (pid_t pid = 0; (pid = wait(&status)) > 0;) {
    failed |= status != 0 ? 1 : 0;
    if (WIFSIGNALED(status)) print_crash(arguments, WTERMSIG(status), seeds[workers.at(pid)]);
  }
  return failed;
}

int refuse(const char* why) {
  std::fprintf(stderr, "duet-simulate: %s\n", why);
  return 2;
}

int show_usage() {
  std::puts(
      "usage: duet-simulate [--seed N] [--steps N] [--seconds N] [--from N] [--to N] [--workers N] [--disk] "
      "[--cluster]\n"
      "  --seed N      that one, with all that happens; with --disk also to the disk\n"
      "  --steps N     of each seed (2000; 20000 with --cluster)\n"
      "  --cluster     daemons that share a queue in a database; --disk shows what each calls there\n"
      "  --from N --to N  these seeds, each once; without --to as many as --seconds (10) have time for,\n"
      "                without --from from a random one on");
  return 2;
}

}  // namespace

int main(int count, char** values) {
  Arguments arguments;
  bool has_from = false;
  bool has_to = false;
  for (int i = 1; i < count; ++i) {
    const std::string name = values[i];
    if (name == "--disk" || name == "--cluster") {
      (name == "--disk" ? arguments.disk : arguments.cluster) = true;
      continue;
    }
    if (i + 1 == count) return show_usage();
    const char* value = values[++i];
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(value, &end, 10);
    if (*value == '\0' || *end != '\0') return show_usage();
    if (name == "--seed") {
      arguments.from = number;
      arguments.one = true;
    } else if (name == "--from") {
      arguments.from = number;
      has_from = true;
    } else if (name == "--to") {
      arguments.to = number;
      has_to = true;
    } else if (name == "--steps") {
      arguments.steps = number;
    } else if (name == "--seconds") {
      arguments.seconds = static_cast<double>(number);
    } else if (name == "--workers") {
      arguments.workers = static_cast<unsigned>(number);
    } else {
      return show_usage();
    }
  }
  if (arguments.steps == 0) arguments.steps = arguments.cluster ? steps_of_cluster : usual_steps;
  if (arguments.one) return run_one(arguments);
  if (arguments.workers == 0) return refuse("--workers must be 1 or more");
  if (has_to && (!has_from || arguments.to < arguments.from)) return refuse("--from N --to M: M must not be below N");
  if (!has_from) arguments.from = std::random_device()();
  if (arguments.to == 0 && arguments.seconds == 0) arguments.seconds = 10;
  return run_all(arguments);
}
