#include "task/lease_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "process/process_tree.h"

namespace duet::task {
namespace {

constexpr const char* lease_name = "lease";
constexpr const char* new_lease_name = "lease.new";
constexpr std::size_t lease_bytes = 4096;
constexpr std::size_t term_places[] = {64, 128};
constexpr int most_looks_at_lease = 100;

// Never changed: another boot gets another file.
struct LeaseHead {
  char format[8];
  char boot[40];
};

// Words, so that they can be read while somebody writes them.
struct LeaseWords {
  std::uint64_t number;
  std::int64_t deadline;
  std::int64_t length;
  std::uint64_t check;
};

constexpr char lease_format[8] = {'d', 'u', 'e', 't', 'l', 's', 'e', '1'};

using LeasePage = std::array<std::byte, lease_bytes>;

LeaseHead head_of(const std::string& boot) {
  LeaseHead head{};
  std::copy_n(lease_format, sizeof lease_format, head.format);
  std::copy_n(boot.begin(), std::min(boot.size(), sizeof head.boot), head.boot);
  return head;
}

// Zeros are not good.
std::uint64_t check_of_term(const LeaseWords& term) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::uint64_t word :
       {term.number, static_cast<std::uint64_t>(term.deadline), static_cast<std::uint64_t>(term.length)}) {
    for (unsigned shift = 0; shift < 64; shift += 8) sum = (sum ^ ((word >> shift) & 0xff)) * 0x100000001b3;
  }
  return sum;
}

bool is_good_term(const LeaseWords& term) { return term.check == check_of_term(term); }

template <typename Word>
Word load_word(const void* page, std::size_t place) {
  // Read-only memory: a load of this size takes no lock, and does not write.
  static_assert(std::atomic_ref<Word>::is_always_lock_free);
  auto* word =
      static_cast<Word*>(const_cast<void*>(static_cast<const void*>(static_cast<const std::byte*>(page) + place)));
  return std::atomic_ref<Word>(*word).load(std::memory_order_acquire);
}

LeaseWords term_at(const void* page, std::size_t place) {
  return {.number = load_word<std::uint64_t>(page, place + offsetof(LeaseWords, number)),
          .deadline = load_word<std::int64_t>(page, place + offsetof(LeaseWords, deadline)),
          .length = load_word<std::int64_t>(page, place + offsetof(LeaseWords, length)),
          .check = load_word<std::uint64_t>(page, place + offsetof(LeaseWords, check))};
}

std::optional<LeaseWords> newest_term(const void* page) {
  std::optional<LeaseWords> found;
  for (const std::size_t place : term_places) {
    const LeaseWords term = term_at(page, place);
    if (is_good_term(term) && (!found || term.number > found->number)) found = term;
  }
  return found;
}

bool has_head(const void* page, const std::string& boot) {
  const LeaseHead head = head_of(boot);
  return std::memcmp(page, &head, sizeof head) == 0;
}

bool write_into(int file, const void* bytes, std::size_t size, std::size_t place) {
  const ssize_t count = pwrite(file, bytes, size, static_cast<off_t>(place));
  if (count >= 0 && count < static_cast<ssize_t>(size)) errno = ENOSPC;  // which the next try would say
  return count == static_cast<ssize_t>(size);
}

// Under another name first: nobody meets a file that is not whole.
base::Fd make_lease(int tasks, const std::string& boot) {
  unlinkat(tasks, new_lease_name, 0);
  base::Fd file(base::check_call(openat(tasks, new_lease_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), "lease"));
  LeasePage page{};
  const LeaseHead head = head_of(boot);
  std::memcpy(page.data(), &head, sizeof head);
  base::check_call(write_into(file.get(), page.data(), page.size(), 0) ? 0 : -1, "lease");
  base::check_call(renameat(tasks, new_lease_name, tasks, lease_name), "lease");
  return file;
}

}  // namespace

Lease::Lease(int tasks) : Lease(tasks, process::boot_id()) {}

Lease::Lease(int tasks, const std::string& boot)
    : file_(openat(tasks, lease_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
  alignas(LeaseWords) LeasePage page{};
  const bool is_whole = file_ && pread(file_.get(), page.data(), page.size(), 0) == static_cast<ssize_t>(page.size());
  if (!is_whole || !has_head(page.data(), boot)) {
    file_ = make_lease(tasks, boot);
  } else if (const auto term = newest_term(page.data())) {
    written_ = term->number;
  }
}

bool Lease::extend(BootTime deadline, std::chrono::nanoseconds length) {
  LeaseWords term{
      .number = written_ + 1, .deadline = deadline.time_since_epoch().count(), .length = length.count(), .check = 0};
  term.check = check_of_term(term);
  const bool is_written = write_into(file_.get(), &term, sizeof term, term_places[term.number % 2]);
  if (is_written) written_ = term.number;
  return is_written;
}

LeaseView::LeaseView(int tasks) : LeaseView(tasks, process::boot_id()) {}

LeaseView::LeaseView(int tasks, std::string boot) : tasks_(tasks), boot_(std::move(boot)) {}

LeaseView::~LeaseView() { unmap(); }

std::optional<LeaseTerm> LeaseView::read(BootTime now) {
  const auto known = look();
  if (known && known->end() > now) return known;
  map();
  return look();
}

void LeaseView::map() {
  unmap();
  const base::Fd file(openat(tasks_, lease_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(lease_bytes)) return;
  void* const page = mmap(nullptr, lease_bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (page == MAP_FAILED) return;
  page_ = page;
  if (!has_head(page, boot_)) unmap();
}

void LeaseView::unmap() {
  if (page_ != nullptr) munmap(const_cast<void*>(page_), lease_bytes);
  page_ = nullptr;
}

// Who is slow may read a place before it is written and the other one while it is: twice the same is the newest.
std::optional<LeaseTerm> LeaseView::look() const {
  if (page_ == nullptr) return std::nullopt;
  std::uint64_t last = 0;  // which no term has
  for (int tries = 0; tries < most_looks_at_lease; ++tries) {
    const auto term = newest_term(page_);
    if (term && term->number == last) {
      return LeaseTerm{BootTime(std::chrono::nanoseconds(term->deadline)), std::chrono::nanoseconds(term->length)};
    }
    last = term ? term->number : 0;
  }
  return std::nullopt;
}

}  // namespace duet::task
