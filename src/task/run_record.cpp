#include "task/run_record.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <system_error>
#include <type_traits>

namespace duet::task {
namespace {

constexpr std::size_t record_bytes = 4096;
constexpr std::size_t max_result = 64 * 1024;
constexpr int max_tries = 100;

// Where each block is. A block never crosses a sector.
constexpr off_t began_place = 0;
constexpr off_t started_place = 512;
constexpr off_t extent_places[] = {1024, 1536};
constexpr off_t outcome_place = 2048;
constexpr off_t usage_place = 2560;
constexpr off_t gone_place = 3072;
constexpr off_t cgroup_place = 3136;
constexpr off_t contact_place = 3584;
constexpr off_t claim_place = 3680;
constexpr off_t result_place = record_bytes;

struct BeganBlock {
  char format[8];
  std::uint64_t task;
  std::uint32_t attempt;
  std::uint32_t keeper;  // 0 in records of version 0.1
  char mark[32];
  char boot[36];
};

struct StartedBlock {
  std::int64_t pid;
  std::uint64_t ticks;
  std::int64_t at;
};

struct ExtentBlock {
  std::uint64_t sequence;
  std::uint64_t capacity;
  std::uint64_t total;
  std::uint64_t count;
  OutputRange gaps[Extent::max_gaps];
};

// As version 0.1 wrote it: one gap, behind the head.
struct OldExtentBlock {
  std::uint64_t sequence;
  std::uint64_t capacity;
  std::uint64_t tail;
  std::uint64_t total;
};

struct OutcomeBlock {
  std::uint8_t kind;
  std::uint8_t timed_out;
  std::uint16_t problem_size;
  std::int32_t code;
  std::int32_t signal;
  std::uint32_t result_size;
  std::uint64_t result_check;
  std::int64_t ended_at;
  char problem[400];
};

// Since version 0.2, written before the outcome.
struct UsageBlock {
  std::uint64_t out_of_memory;
  std::uint64_t cpu_microseconds;
  std::uint64_t max_memory;
  std::uint64_t output_bytes;
};

struct GoneBlock {
  std::uint64_t gone;
};

// Of runs with limits. A longer path is left out: it is of use only if the keeper is killed.
struct CgroupBlock {
  char folder[432];
};

struct ContactBlock {
  char name[80];
};

// Of runs in a queue that many machines share.
struct ClaimBlock {
  std::uint64_t fence;
  std::uint64_t leased;
  char worker[128];
};

constexpr char format[8] = {'d', 'u', 'e', 't', 'r', 'u', 'n', '1'};

std::uint64_t checksum(const void* bytes, std::size_t size) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < size; ++i) sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  return sum;
}

template <typename Block>
struct Sealed {
  Block block;
  std::uint64_t check;
};

bool write_all(int fd, const void* bytes, std::size_t size, off_t place) {
  const ssize_t count = pwrite(fd, bytes, size, place);
  if (count >= 0 && count < static_cast<ssize_t>(size)) errno = ENOSPC;  // which the next try would say
  return count == static_cast<ssize_t>(size);
}

template <typename Block>
Sealed<Block> seal(const Block& block) {
  static_assert(std::is_trivially_copyable_v<Block> && sizeof(Sealed<Block>) <= 512);
  return {block, checksum(&block, sizeof block)};
}

template <typename Block>
bool write_block(int fd, off_t place, const Block& block) {
  const Sealed<Block> sealed = seal(block);
  return write_all(fd, &sealed, sizeof sealed, place);
}

using Page = std::array<char, record_bytes>;

template <typename Block>
std::optional<Block> block_at(const Page& page, off_t place) {
  Sealed<Block> sealed;
  std::memcpy(&sealed, page.data() + place, sizeof sealed);
  if (sealed.check != checksum(&sealed.block, sizeof sealed.block)) return std::nullopt;
  return sealed.block;
}

tl::expected<Page, int> read_page(int fd) {
  Page page{};
  if (pread(fd, page.data(), page.size(), 0) < 0) return tl::unexpected(errno);  // what is missing was not written
  return page;
}

struct FoundExtent {
  std::uint64_t sequence = 0;
  Extent extent = {};
};

std::optional<FoundExtent> extent_at(const Page& page, off_t place) {
  if (const auto block = block_at<ExtentBlock>(page, place)) {
    FoundExtent found{block->sequence, {.capacity = block->capacity, .total = block->total}};
    found.extent.gaps.assign(block->gaps, block->gaps + std::min<std::uint64_t>(block->count, Extent::max_gaps));
    return found;
  }
  if (const auto block = block_at<OldExtentBlock>(page, place)) {
    FoundExtent found{block->sequence, {.capacity = block->capacity, .total = block->total}};
    if (block->tail > found.extent.head()) found.extent.gaps = {{found.extent.head(), block->tail}};
    return found;
  }
  return std::nullopt;
}

bool may_have_extent(const Page& page) {
  return std::any_of(page.begin() + extent_places[0], page.begin() + outcome_place,
                     [](char byte) { return byte != 0; });
}

std::int64_t to_number(base::UtcTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

base::UtcTime to_time(std::int64_t number) {
  return base::UtcTime(std::chrono::duration_cast<base::UtcTime::duration>(std::chrono::nanoseconds(number)));
}

template <std::size_t size>
void put_text(char (&field)[size], std::string_view text) {
  std::copy_n(text.begin(), std::min(size, text.size()), field);
}

template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  return {field, strnlen(field, size)};
}

ClaimBlock block_of(const Claim& claim) {
  ClaimBlock block{.fence = claim.fence, .leased = claim.leased ? 1U : 0U, .worker = {}};
  put_text(block.worker, claim.worker);
  return block;
}

Claim claim_of(const ClaimBlock& block) {
  return {.fence = block.fence, .worker = text_of(block.worker), .leased = block.leased != 0};
}

Outcome outcome_of(const OutcomeBlock& block) {
  Outcome outcome;
  outcome.kind = static_cast<Outcome::Kind>(block.kind);
  outcome.code = block.code;
  outcome.signal = block.signal;
  outcome.timed_out = block.timed_out != 0;
  outcome.ended_at = to_time(block.ended_at);
  outcome.problem.assign(block.problem, std::min<std::size_t>(block.problem_size, sizeof block.problem));
  return outcome;
}

UsageBlock block_of(const Usage& usage, bool out_of_memory) {
  return {out_of_memory ? 1U : 0U, static_cast<std::uint64_t>(usage.cpu.count()), usage.max_memory, usage.output_bytes};
}

Usage usage_of(const UsageBlock& block) {
  return {.cpu = std::chrono::microseconds(block.cpu_microseconds),
          .max_memory = block.max_memory,
          .output_bytes = block.output_bytes};
}

template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '0') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

void Extent::drop(OutputRange range) {
  if (range.from >= range.to) return;
  auto next = std::find_if(gaps.begin(), gaps.end(), [&](const OutputRange& gap) { return gap.to >= range.from; });
  while (next != gaps.end() && next->from <= range.to) {
    range = {std::min(range.from, next->from), std::max(range.to, next->to)};
    next = gaps.erase(next);
  }
  gaps.insert(next, range);
  if (gaps.size() <= max_gaps) return;
  auto nearest = gaps.begin();
  for (auto gap = gaps.begin(); std::next(gap) != gaps.end(); ++gap) {
    if (std::next(gap)->from - gap->to < std::next(nearest)->from - nearest->to) nearest = gap;
  }
  nearest->to = std::next(nearest)->to;
  gaps.erase(std::next(nearest));
}

std::string record_name(RunId run) { return "task-" + std::to_string(run.task) + '.' + std::to_string(run.attempt); }
std::string output_name(RunId run) { return record_name(run) + ".out"; }

std::string new_contact_name() { return "keeper-" + random_mark() + ".sock"; }
bool is_contact_name(std::string_view name) { return name.starts_with("keeper-") && name.ends_with(".sock"); }

std::optional<RunId> run_of_record(std::string_view name) {
  RunId run;
  if (!name.starts_with("task-")) return std::nullopt;
  name.remove_prefix(5);
  if (!take_number(name, run.task) || !name.starts_with('.')) return std::nullopt;
  name.remove_prefix(1);
  if (!take_number(name, run.attempt) || !name.empty()) return std::nullopt;
  return run;
}

std::string random_mark() {
  std::array<unsigned char, 16> bytes{};
  base::check_call(static_cast<int>(getrandom(bytes.data(), bytes.size(), 0)), "getrandom");
  std::string mark;
  for (const unsigned char byte : bytes) {
    mark += "0123456789abcdef"[byte >> 4];
    mark += "0123456789abcdef"[byte & 15];
  }
  return mark;
}

RunRecord RunRecord::create(int tasks, RunId run, const std::string& contact) {
  const std::string name = record_name(run);
  RunRecord record(
      base::Fd(base::check_call(openat(tasks, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), "open")));
  Page page{};
  ContactBlock block{};
  put_text(block.name, contact);
  const Sealed<ContactBlock> sealed = seal(block);
  std::memcpy(page.data() + contact_place, &sealed, sizeof sealed);
  if (record.lock() && write_all(record.get(), page.data(), page.size(), 0)) return record;
  const int error = errno;
  unlinkat(tasks, name.c_str(), 0);
  throw std::system_error(error, std::generic_category(), "record of a run");
}

RunRecord RunRecord::open(int tasks, RunId run) {
  return RunRecord(base::Fd(openat(tasks, record_name(run).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)));
}

RunRecord RunRecord::open_to_read(int tasks, RunId run) {
  return RunRecord(base::Fd(openat(tasks, record_name(run).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)));
}

bool RunRecord::lock() const { return flock(get(), LOCK_EX | LOCK_NB) == 0; }

bool RunRecord::write_began(RunId run, const Fingerprint& fingerprint, const std::optional<Claim>& claim) const {
  BeganBlock block{};
  std::copy_n(format, sizeof format, block.format);
  block.task = run.task;
  block.attempt = run.attempt;
  block.keeper = static_cast<std::uint32_t>(fingerprint.keeper);
  put_text(block.mark, fingerprint.mark);
  put_text(block.boot, fingerprint.boot);
  CgroupBlock cgroup{};
  const bool has_cgroup = !fingerprint.cgroup.empty() && fingerprint.cgroup.size() <= sizeof cgroup.folder;
  put_text(cgroup.folder, fingerprint.cgroup);
  if (has_cgroup && !write_block(get(), cgroup_place, cgroup)) return false;
  if (claim && !write_block(get(), claim_place, block_of(*claim))) return false;
  return write_block(get(), began_place, block);
}

bool RunRecord::write_started(const Started& started, std::uint64_t ticks) const {
  return write_block(get(), started_place, StartedBlock{started.pid, ticks, to_number(started.at)});
}

bool RunRecord::write_outcome(const Outcome& outcome) const {
  if (outcome.usage && !write_block(get(), usage_place, block_of(*outcome.usage, outcome.out_of_memory))) return false;
  OutcomeBlock block{};
  block.kind = static_cast<std::uint8_t>(outcome.kind);
  block.timed_out = outcome.timed_out ? 1 : 0;
  block.code = outcome.code;
  block.signal = outcome.signal;
  block.ended_at = to_number(outcome.ended_at);
  block.problem_size = static_cast<std::uint16_t>(std::min(outcome.problem.size(), sizeof block.problem));
  put_text(block.problem, outcome.problem);
  const std::string& result = outcome.result;
  if (result.empty()) return write_block(get(), outcome_place, block);
  const bool has_result = write_all(get(), result.data(), result.size(), result_place);
  const int error = errno;
  block.result_size = static_cast<std::uint32_t>(result.size());
  block.result_check = checksum(result.data(), result.size());
  if (!write_block(get(), outcome_place, block)) return false;
  errno = error;
  return has_result;
}

bool RunRecord::write_gone() const { return write_block(get(), gone_place, GoneBlock{1}); }

bool RunRecord::write_extent(const Extent& extent, std::uint64_t sequence) const {
  ExtentBlock block{.sequence = sequence, .capacity = extent.capacity, .total = extent.total, .count = 0, .gaps = {}};
  block.count = std::min(extent.gaps.size(), Extent::max_gaps);
  std::copy_n(extent.gaps.begin(), block.count, block.gaps);
  return write_block(get(), extent_places[sequence % 2], block);
}

bool RunRecord::sync(int tasks) const { return fdatasync(get()) == 0 && fsync(tasks) == 0; }

tl::expected<RunRecord::State, int> RunRecord::try_read() const {
  const auto read = read_page(get());
  if (!read) return tl::unexpected(read.error());
  const Page& page = *read;
  State state;
  state.has_extent = may_have_extent(page);
  if (const auto contact = block_at<ContactBlock>(page, contact_place)) state.contact = text_of(contact->name);
  const auto began = block_at<BeganBlock>(page, began_place);
  if (!began) return state;
  state.began = true;
  state.fingerprint.mark = text_of(began->mark);
  state.fingerprint.boot = text_of(began->boot);
  state.fingerprint.keeper = static_cast<pid_t>(began->keeper);
  if (const auto cgroup = block_at<CgroupBlock>(page, cgroup_place)) {
    state.fingerprint.cgroup = text_of(cgroup->folder);
  }
  if (const auto claim = block_at<ClaimBlock>(page, claim_place)) state.claim = claim_of(*claim);
  if (const auto started = block_at<StartedBlock>(page, started_place)) {
    state.fingerprint.main = static_cast<pid_t>(started->pid);
    state.fingerprint.main_ticks = started->ticks;
    state.started = Started{static_cast<pid_t>(started->pid), to_time(started->at)};
  }
  if (const auto outcome = block_at<OutcomeBlock>(page, outcome_place)) {
    state.outcome = outcome_of(*outcome);
    state.outcome->started = state.started;
    if (const auto usage = block_at<UsageBlock>(page, usage_place)) {
      state.outcome->usage = usage_of(*usage);
      state.outcome->out_of_memory = usage->out_of_memory != 0;
    }
  }
  state.gone = block_at<GoneBlock>(page, gone_place).has_value();
  return state;
}

std::optional<Extent> RunRecord::read_extent() const {
  for (int tries = 0; tries < max_tries; ++tries) {
    const auto page = read_page(get());
    if (!page) break;
    const auto first = extent_at(*page, extent_places[0]);
    const auto second = extent_at(*page, extent_places[1]);
    if (first && (!second || first->sequence > second->sequence)) return first->extent;
    if (second) return second->extent;
    if (!may_have_extent(*page)) break;
    // Somebody wrote both while we read.
  }
  return std::nullopt;
}

tl::expected<std::string, int> RunRecord::try_read_result() const {
  const auto page = read_page(get());
  if (!page) return tl::unexpected(page.error());
  const auto block = block_at<OutcomeBlock>(*page, outcome_place);
  if (!block) return std::string();
  if (block->result_size > max_result) return tl::unexpected(ENODATA);
  std::string result(block->result_size, '\0');
  const ssize_t count = pread(get(), result.data(), result.size(), result_place);
  if (count < 0) return tl::unexpected(errno);
  const bool whole = count == static_cast<ssize_t>(result.size()) &&
                     (result.empty() || checksum(result.data(), result.size()) == block->result_check);
  if (!whole) return tl::unexpected(ENODATA);
  return result;
}

std::vector<std::string> names_in(int tasks) {
  const auto check = [](bool good) {
    if (!good) throw std::system_error(errno, std::generic_category(), "the folder of the tasks cannot be read");
  };
  base::Fd again(openat(tasks, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  check(static_cast<bool>(again));
  const auto close_folder = [](DIR* folder) { closedir(folder); };
  const std::unique_ptr<DIR, decltype(close_folder)> folder(fdopendir(again.get()), close_folder);
  check(folder != nullptr);
  [[maybe_unused]] const int owned = again.release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    check(entry != nullptr || errno == 0);
    if (entry == nullptr) return names;
    names.emplace_back(entry->d_name);
  }
}

std::vector<RunId> recorded_outputs(int tasks) {
  std::vector<RunId> runs;
  for (std::string_view name : names_in(tasks)) {
    if (const auto run = run_of_record(name)) {  // it may be all that is left of the output
      const RunRecord::State state = RunRecord::open_to_read(tasks, *run).read();
      if (state.has_extent && (state.gone || !state.began)) runs.push_back(*run);  // a power cut may tear off its head
    }
    for (const std::string_view suffix : {".out", ".marks"}) {
      if (!name.ends_with(suffix)) continue;
      if (const auto run = run_of_record(name.substr(0, name.size() - suffix.size()))) runs.push_back(*run);
    }
  }
  return runs;
}

std::vector<RunId> recorded_runs(int tasks) {
  std::vector<RunId> runs;
  for (const std::string& name : names_in(tasks)) {
    if (const auto run = run_of_record(name)) runs.push_back(*run);
  }
  return runs;
}

}  // namespace duet::task
