#include "simulate/disk.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace duet::simulate {

Disk::Disk() : root_(std::make_shared<Node>()) {
  root_->number = ++last_number_;
  root_->is_folder = true;
}

NodePointer Disk::find(const Node& folder, std::string_view name) {
  const auto found = folder.names.find(name);
  return found == folder.names.end() ? nullptr : found->second;
}

int Disk::make(Node& folder, std::string_view name, bool is_folder, NodePointer& made) {
  if ((made = find(folder, name))) return EEXIST;
  if (const int error = ask(Step::make, name)) return error;
  made = std::make_shared<Node>();
  made->number = ++last_number_;
  made->is_folder = is_folder;
  change_names(folder, {{{std::string(name), made}}});
  return 0;
}

int Disk::remove(Node& folder, std::string_view name) {
  const NodePointer node = find(folder, name);
  if (!node) return ENOENT;
  if (node->is_folder && !node->names.empty()) return ENOTEMPTY;
  if (const int error = ask(Step::remove, name)) return error;
  change_names(folder, {{{std::string(name), nullptr}}});
  return 0;
}

int Disk::rename(Node& folder, std::string_view from, std::string_view to) {
  const NodePointer node = find(folder, from);
  if (!node) return ENOENT;
  if (const int error = ask(Step::make, to)) return error;
  if (from != to) change_names(folder, {{{std::string(from), nullptr}, {std::string(to), node}}});
  return 0;
}

void Disk::change_names(Node& folder, Node::Relink change) {
  relink(folder.names, change);
  folder.unsynced_names.push_back(std::move(change));
}

void Disk::relink(Node::Names& names, const Node::Relink& change) {
  for (const auto& [name, node] : change.names) {
    if (node) {
      names[name] = node;
    } else {
      names.erase(name);
    }
  }
}

int Disk::write(Node& file, std::string_view name, std::uint64_t offset, std::string_view bytes) {
  const bool grows = offset + bytes.size() > file.now.size();
  if (const int error = ask(grows ? Step::grow : Step::write, name)) return error;
  file.unsynced.push_back({offset, std::string(bytes)});
  apply(file.now, file.unsynced.back());
  return 0;
}

int Disk::truncate(Node& file, std::string_view name, std::uint64_t size) {
  // A file becomes shorter on a full disk, too.
  if (size > file.now.size()) {
    if (const int error = ask(Step::grow, name)) return error;
    file.unsynced.push_back({.offset = size - 1, .bytes = std::string(1, '\0')});
  } else {
    if (const int error = ask(Step::remove, name)) return error;
    file.unsynced.push_back({.offset = size, .cuts = true});
  }
  apply(file.now, file.unsynced.back());
  return 0;
}

std::string Disk::read(const Node& file, std::uint64_t offset, std::size_t count) {
  if (file.regions.empty()) return offset < file.now.size() ? file.now.substr(offset, count) : std::string();
  std::string content;
  for (const auto& region : file.regions) content.append(region->data(), region->size());
  return offset < content.size() ? content.substr(offset, count) : std::string();
}

void Disk::apply(std::string& content, const Node::Edit& edit) {
  if (edit.cuts) return content.resize(std::min<std::size_t>(content.size(), edit.offset));
  if (content.size() < edit.offset + edit.bytes.size()) content.resize(edit.offset + edit.bytes.size());
  content.replace(edit.offset, edit.bytes.size(), edit.bytes);
}

int Disk::sync(Node& node, std::string_view name, Random& chance) {
  if (const int error = ask(Step::sync, name)) {
    if (error != nothing_happens) fail_sync(node, chance);
    return error;
  }
  for (const Node::Edit& edit : node.unsynced) apply(node.safe, edit);
  node.unsynced.clear();
  for (const Node::Relink& change : node.unsynced_names) relink(node.safe_names, change);
  node.unsynced_names.clear();
  return 0;
}

void Disk::fail_sync(Node& node, Random& chance) {
  std::vector<Node::Edit> still;
  for (Node::Edit& edit : node.unsynced) {
    switch (chance.below(3)) {
      case 0:
        apply(node.safe, edit);
        break;
      case 1:
        break;  // dropped
      default:
        still.push_back(std::move(edit));
    }
  }
  node.unsynced = std::move(still);
}

void Disk::cut_power(Random& chance) { cut(*root_, chance); }

void Disk::cut(Node& node, Random& chance) {
  for (Node::Edit& edit : node.unsynced) {
    const std::uint64_t fate = chance.below(3);
    if (fate == 1) continue;
    if (fate == 2 && !edit.cuts) {
      const std::uint64_t sectors = (edit.offset % sector + edit.bytes.size()) / sector;
      const std::uint64_t end = (edit.offset / sector + chance.between(0, sectors)) * sector;
      edit.bytes.resize(std::min<std::uint64_t>(edit.bytes.size(), end > edit.offset ? end - edit.offset : 0));
      if (edit.bytes.empty()) continue;
    }
    apply(node.safe, edit);
  }
  node.unsynced.clear();
  node.now = node.safe;
  if (chance.one_in(2)) node.regions.clear();  // the kernel writes them back when it likes

  const std::uint64_t kept = chance.between(0, node.unsynced_names.size());
  for (std::size_t i = 0; i < kept; ++i) relink(node.safe_names, node.unsynced_names[i]);
  node.unsynced_names.clear();
  node.names = node.safe_names;
  for (const auto& [name, child] : node.names) cut(*child, chance);
}

std::uint64_t Disk::bytes() const {
  const std::function<std::uint64_t(const Node&)> count = [&](const Node& node) {
    std::uint64_t sum = node.now.size();
    for (const auto& [name, child] : node.names) sum += count(*child);
    return sum;
  };
  return count(*root_);
}

}  // namespace duet::simulate
