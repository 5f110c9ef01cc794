#include "simulate/machine.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace duet::simulate {
namespace {

int fail(int error) {
  errno = error;
  return -1;
}

void fill(const Node& node, struct stat& out) {
  out = {};
  out.st_dev = 1;
  out.st_ino = node.number;
  out.st_mode = node.is_folder ? S_IFDIR | 0700 : S_IFREG | 0600;
  out.st_nlink = 1;
  out.st_size = static_cast<off_t>(node.regions.empty() ? node.now.size() : node.regions.size() * sizeof(Node::Region));
}

}  // namespace

Machine* Machine::current_ = nullptr;  // NOLINT(readability-identifier-naming)

Machine::Machine(std::uint64_t seed)
    : chance_(seed),
      vfs_(disk_, chance_.fork(),
           {.folder_of = [this](int descriptor) { return node(descriptor); },
            .unix_milliseconds = [this] { return base::milliseconds_of(clock_.utc()); }}) {
  note_boot();
  disk_.set_fault([this](Disk::Step step, std::string_view name) { return fault(step, name); });
  current_ = this;
}

Machine::~Machine() { current_ = nullptr; }

int Machine::fault(Disk::Step step, std::string_view name) {
  const int error = error_of(step);
  if (on_change) on_change(step, name, error);
  return error;
}

int Machine::error_of(Disk::Step step) {
  ++changes_;
  if (process_ != nullptr) {
    if (process_->dead) return Disk::nothing_happens;
    if (process_->dies_after && (*process_->dies_after)-- == 0) {
      process_->dies_after.reset();
      process_->dead = true;
      if (!process_->finishes_last_change) return Disk::nothing_happens;
    }
  }
  if (trouble.read_only) return EROFS;
  if (trouble.full && (step == Disk::Step::grow || step == Disk::Step::make)) return ENOSPC;
  if (trouble.writes_fail && step != Disk::Step::sync) return EIO;
  if (trouble.syncs_fail && step == Disk::Step::sync) return EIO;
  return 0;
}

void Machine::end(Process& process) {
  std::erase_if(descriptors_, [&](const auto& entry) { return entry.second.owner == &process; });
}

void Machine::cut_power() {
  descriptors_.clear();
  locks_.clear();
  disk_.cut_power(chance_);
  note_boot();
}

// As long as the kernel's.
void Machine::note_boot() {
  boot_ = std::to_string(++boots_);
  boot_.insert(0, 36 - boot_.size(), '0');
}

int Machine::open_boot_id() {
  auto file = std::make_shared<Node>();
  file->now = boot_ + '\n';
  return add(std::make_shared<Description>(Description{std::move(file), "boot_id"}), process_);
}

ssize_t Machine::read_on(int descriptor, void* into, std::size_t count) {
  const Descriptor* found = find(descriptor);
  if (found == nullptr) return fail(EBADF);
  const ssize_t got = read_at(descriptor, into, count, found->description->place);
  if (got > 0) found->description->place += static_cast<std::uint64_t>(got);
  return got;
}

int Machine::add(std::shared_ptr<Description> description, Process* owner) {
  descriptors_[++last_descriptor_] = {std::move(description), owner};
  return last_descriptor_;
}

Machine::Descriptor* Machine::find(int descriptor) {
  const auto found = descriptors_.find(descriptor);
  return found == descriptors_.end() ? nullptr : &found->second;
}

const Machine::Descriptor* Machine::find(int descriptor) const {
  const auto found = descriptors_.find(descriptor);
  return found == descriptors_.end() ? nullptr : &found->second;
}

NodePointer Machine::node(int descriptor) const {
  const Descriptor* found = find(descriptor);
  return found == nullptr ? nullptr : found->description->node;
}

int Machine::open_root() { return add(std::make_shared<Description>(Description{disk_.root(), "."}), process_); }

int Machine::give(int descriptor, Process& to) {
  const Descriptor* found = find(descriptor);
  return found == nullptr ? fail(EBADF) : add(found->description, &to);
}

int Machine::open_at(int folder, const char* name, int flags) {
  const NodePointer parent = node(folder);
  if (!parent) return fail(EBADF);
  if (trouble.out_of_descriptors) return fail(EMFILE);
  NodePointer opened = std::strcmp(name, ".") == 0 ? parent : Disk::find(*parent, name);
  if (!opened) {
    if ((flags & O_CREAT) == 0) return fail(ENOENT);
    if (const int error = disk_.make(*parent, name, false, opened)) return fail(error);
  } else if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
    return fail(EEXIST);
  } else if (trouble.read_only && (flags & O_ACCMODE) != O_RDONLY) {
    return fail(EROFS);
  }
  if ((flags & O_DIRECTORY) != 0 && !opened->is_folder) return fail(ENOTDIR);
  if ((flags & O_TRUNC) != 0 && !opened->now.empty()) {
    if (const int error = disk_.truncate(*opened, name, 0)) return fail(error);
  }
  return add(std::make_shared<Description>(Description{std::move(opened), name}), process_);
}

int Machine::close(int descriptor) { return descriptors_.erase(descriptor) == 1 ? 0 : fail(EBADF); }

int Machine::duplicate(int descriptor) {
  const Descriptor* found = find(descriptor);
  if (found == nullptr) return fail(EBADF);
  return trouble.out_of_descriptors ? fail(EMFILE) : add(found->description, process_);
}

ssize_t Machine::read_at(int descriptor, void* into, std::size_t count, std::uint64_t offset) {
  const NodePointer file = node(descriptor);
  if (!file) return fail(EBADF);
  if (file->is_folder) return fail(EISDIR);
  const std::string bytes = Disk::read(*file, offset, count);
  std::memcpy(into, bytes.data(), bytes.size());
  return static_cast<ssize_t>(bytes.size());
}

ssize_t Machine::write_at(int descriptor, const void* bytes, std::size_t count, std::uint64_t offset) {
  const Descriptor* found = find(descriptor);
  if (found == nullptr) return fail(EBADF);
  const Description& file = *found->description;
  const int error = disk_.write(*file.node, file.name, offset, {static_cast<const char*>(bytes), count});
  return error == 0 ? static_cast<ssize_t>(count) : fail(error);
}

int Machine::sync(int descriptor) {
  const Descriptor* found = find(descriptor);
  if (found == nullptr) return fail(EBADF);
  const int error = disk_.sync(*found->description->node, found->description->name, chance_);
  return error == 0 ? 0 : fail(error);
}

int Machine::truncate(int descriptor, std::uint64_t size) {
  const Descriptor* found = find(descriptor);
  if (found == nullptr) return fail(EBADF);
  const int error = disk_.truncate(*found->description->node, found->description->name, size);
  return error == 0 ? 0 : fail(error);
}

// As flock(2): it belongs to the description, whoever has descriptors of it.
int Machine::lock(int descriptor, int operation) {
  const Descriptor* found = find(descriptor);
  if (found == nullptr) return fail(EBADF);
  std::weak_ptr<Description>& holder = locks_[found->description->node.get()];
  const std::shared_ptr<Description> held = holder.lock();
  if ((operation & LOCK_UN) != 0) {
    if (held == found->description) holder.reset();
    return 0;
  }
  if (held && held != found->description) return fail(EWOULDBLOCK);
  holder = found->description;
  return 0;
}

int Machine::status(int descriptor, struct stat& out) const {
  const NodePointer found = node(descriptor);
  if (!found) return fail(EBADF);
  fill(*found, out);
  return 0;
}

int Machine::status_at(int folder, const char* name, struct stat& out) const {
  const NodePointer parent = node(folder);
  if (!parent) return fail(EBADF);
  const NodePointer found = *name == '\0' ? parent : Disk::find(*parent, name);
  if (!found) return fail(ENOENT);
  fill(*found, out);
  return 0;
}

int Machine::remove_at(int folder, const char* name) {
  const NodePointer parent = node(folder);
  const int error = parent ? disk_.remove(*parent, name) : EBADF;
  return error == 0 ? 0 : fail(error);
}

int Machine::rename_at(int folder, const char* from, const char* to) {
  const NodePointer parent = node(folder);
  const int error = parent ? disk_.rename(*parent, from, to) : EBADF;
  return error == 0 ? 0 : fail(error);
}

int Machine::make_folder_at(int folder, const char* name) {
  const NodePointer parent = node(folder);
  NodePointer made;
  const int error = parent ? disk_.make(*parent, name, true, made) : EBADF;
  return error == 0 ? 0 : fail(error);
}

std::vector<std::string> Machine::list(int descriptor) const {
  std::vector<std::string> names;
  if (const NodePointer folder = node(descriptor)) {
    for (const auto& [name, child] : folder->names) names.push_back(name);
  }
  return names;
}

}  // namespace duet::simulate
