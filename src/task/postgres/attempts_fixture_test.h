#pragma once

#include <fcntl.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/array.hpp>

#include "duet/base/base64.h"
#include "duet/rpc/value.h"
#include "duet/transport/temporary_folder_test.h"
#include "task/postgres/attempts.h"
#include "task/postgres/member_fixture_test.h"
#include "task/postgres/records.h"
#include "task/supervisor_fixture_test.h"

namespace duet::task::postgres {

inline constexpr RunId seven{7, 1};
inline constexpr RunId eight{8, 1};

/// A call of report_v1, read back.
struct ReportTold {
  struct Piece {
    TaskId task = 0;
    std::uint64_t offset = 0;
    std::string bytes = {};
    bool last = false;
  };

  std::vector<TaskId> starts = {};
  std::vector<TaskId> ends = {};
  std::vector<std::int64_t> start_fences = {};
  std::vector<std::int64_t> fences = {};  ///< of the ends
  std::vector<std::int64_t> flags = {};
  std::vector<std::int64_t> reasons = {};
  std::string messages = {};  ///< an array literal
  std::vector<Piece> pieces = {};
  std::int64_t most = 0;
  std::int64_t timeline = 0;

  explicit ReportTold(const std::vector<Argument>& arguments) {
    for (const boost::json::value& each : list_of(arguments.at(2))) {
      starts.push_back(static_cast<TaskId>(number_in(each.as_object(), "task")));
      start_fences.push_back(number_in(each.as_object(), "fence"));
    }
    for (const std::int64_t task : numbers_of(arguments.at(3))) ends.push_back(static_cast<TaskId>(task));
    fences = numbers_of(arguments.at(4));
    flags = numbers_of(arguments.at(19));
    reasons = numbers_of(arguments.at(8));
    messages = arguments.at(9).value_or("");
    for (const boost::json::value& each : list_of(arguments.at(21))) {
      const boost::json::object& piece = each.as_object();
      pieces.push_back({static_cast<TaskId>(number_in(piece, "task")),
                        static_cast<std::uint64_t>(number_in(piece, "offset")),
                        base::from_base64(text_in(piece, "bytes")).value(), flag_in(piece, "last")});
    }
    most = std::stoll(arguments.at(22).value());
    timeline = std::stoll(arguments.at(27).value());
  }
  bool has_end(TaskId task) const { return std::ranges::find(ends, task) != ends.end(); }

  /// Of an array literal of numbers.
  static std::vector<std::int64_t> numbers_of(const Argument& array) {
    std::vector<std::int64_t> numbers;
    std::string digits;
    for (const char c : array.value_or("")) {
      if (c == '-' || (c >= '0' && c <= '9')) {
        digits += c;
      } else if (!digits.empty()) {
        numbers.push_back(std::stoll(std::exchange(digits, {})));
      }
    }
    return numbers;
  }

 private:
  static boost::json::array list_of(const Argument& text) {
    return text ? rpc::parse_value(*text).as_array() : boost::json::array();
  }
};

/// The attempts of a worker that has joined, whose database and runner are the test.
class AttemptsTest : public MemberTest {
 protected:
  AttemptsTest() {
    settings.max_running = 2;
    runner.tasks = tasks.get();
    on_joined = [this](const std::vector<OwnAttempt>& own) { attempts->joined(own); };
    on_beaten = [this](const Membership::Calls::Beat& beat) { attempts->beaten(beat); };
    on_recovered = [this](const Membership::Calls::Recovery& recovery) { attempts->recovered(recovery); };
    remembered = [this] { return attempts->remembered(); };
    make_attempts();
    join();
    line.calls.clear();
  }

  void make_attempts(std::uint64_t output = std::uint64_t{4} << 20U) {
    agents.emplace(
        settings, process::Environment{{"PATH", "/bin"}}, [] { return std::string("/project"); }, provide_for);
    Attempts::Calls calls;
    calls.settings = [this]() -> const TaskSettings& { return settings; };
    calls.project = [] { return std::string("/project"); };
    calls.began = [](RunId, bool) {};
    calls.gone = [](RunId) {};
    calls.never_began = [](RunId) {};
    calls.announced = [](RunId) {};
    calls.ended = [this](TaskId id) {
      if (line.has_no_memory) throw std::bad_alloc();
      ended.push_back(id);
    };
    calls.stopped = [this] { ++stops; };
    attempts.emplace(loop, log, line, *membership, *agents,
                     Attempts::Options{.tasks = tasks.get(), .worker = "one", .output = output}, std::move(calls));
    attempts->begin(runner, recorded);
    tell = attempts->keeper_events();
  }

  static Result rows(const std::vector<Result::Row>& rows) {
    return {{"what", "id", "fence", "attempt", "agent", "grp", "on_lost", "priority", "retries", "spared", "body",
             "env", "cancelling", "lane", "needs", "submitter"},
            rows};
  }
  static Result::Row claim(TaskId id, std::int64_t fence, std::uint32_t attempt = 1,
                           const std::string& agent = "shell") {
    return {"claim",
            std::to_string(id),
            std::to_string(fence),
            std::to_string(attempt),
            agent,
            "default",
            "0",
            "0",
            "0",
            "0",
            to_body({.prompt = "true"}),
            "",
            "f",
            "1",
            "",
            ""};
  }
  static Result::Row end(TaskId id, std::int64_t fence, State state = State::completed) {
    return about("end", id, fence, std::to_string(static_cast<int>(state)));
  }
  static Result::Row fenced_row(TaskId id, std::int64_t fence) { return about("fenced", id, fence, std::nullopt); }

  static std::string beat_with(const std::string& mine) {
    return R"({"cancels":[],"workers":[],"mine":)" + mine + R"(,"shortestLease":90000,"epoch":"e"})";
  }
  ReportTold report() { return ReportTold(line.take("report_v1").arguments); }
  void answer(const std::vector<Result::Row>& answered) { line.take("report_v1").done(rows(answered)); }
  bool is_reporting() const { return line.has("report_v1"); }
  /// Claims it, as if it had been asked for.
  void have(const std::vector<Result::Row>& claims) {
    line.listens = false;  // nobody says that it waits for more
    attempts->look(false);
    answer(claims);
    line.listens = true;
  }
  void started(RunId run) { tell.started(run, {.pid = 100, .at = clock.utc()}); }
  void exited(RunId run, int code = 0) {
    tell.ended(run, {.kind = Outcome::Kind::exited,
                     .code = code,
                     .started = Started{100, clock.utc()},
                     .ended_at = clock.utc(),
                     .result = "out"});
  }
  void write_output(RunId run, const std::string& bytes) const {
    std::ofstream(folder.file(output_name(run)), std::ios::binary | std::ios::app) << bytes;
  }

  transport::TemporaryFolder folder;
  base::Fd tasks{open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  TaskSettings settings;
  Agents::ProvideFor provide_for;
  std::optional<Agents> agents;
  std::vector<RunId> recorded;
  FakeRunner runner;
  KeeperEvents tell;
  std::vector<TaskId> ended;
  int stops = 0;
  std::optional<Attempts> attempts;

 private:
  static Result::Row about(const std::string& what, TaskId id, std::int64_t fence,
                           const std::optional<std::string>& attempt) {
    return {what, std::to_string(id), std::to_string(fence), attempt, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  }
};

}  // namespace duet::task::postgres
