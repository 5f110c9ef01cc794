#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/random.h"

namespace duet::simulate {

/// A file or a folder on a simulated disk: as programs see it, as the platters have it, and what lies between.
///
/// A folder's names reach the platters when the folder is synced, a file's bytes when the file is. A file lives as long
/// as somebody holds it, as open files do.
struct Node {
  struct Edit {
    std::uint64_t offset = 0;
    std::string bytes = {};
    bool cuts = false;  ///< the file ends at `offset`
  };
  using Region = std::array<char, std::size_t{32} << 10>;
  using Names = std::map<std::string, std::shared_ptr<Node>, std::less<>>;
  /// One change of the names, all of which happens or none: a rename has two.
  struct Relink {
    std::vector<std::pair<std::string, std::shared_ptr<Node>>> names;  ///< an empty pointer: the name is gone
  };

  std::uint64_t number = 0;
  bool is_folder = false;

  std::string now;
  std::string safe;
  std::vector<Edit> unsynced = {};
  /// Shared memory of SQLite, written past all calls and never synced; such a file has no other content.
  std::vector<std::unique_ptr<Region>> regions = {};

  Names names = {};
  Names safe_names = {};
  std::vector<Relink> unsynced_names = {};
};

using NodePointer = std::shared_ptr<Node>;

/// A disk in memory that can fail and lose what was not synced. Calls return 0 or an errno, as the kernel's do.
///
/// A power cut keeps what was synced. Of what was not, each write is kept, lost, or kept up to a border of a sector, by
/// chance; changes of a folder's names are kept up to one of them, in their order, as journaling file systems do. A
/// sync that fails may have kept or dropped each write; what it dropped is still read until the power is cut, but no
/// later sync writes it, as with Linux. Knows nothing of processes, descriptors or SQLite.
class Disk {
 public:
  /// What is done: `grow` is a write that needs room, `write` one over what is there.
  enum class Step : std::uint8_t { write, grow, sync, make, remove };
  /// Asked before each change: an errno makes it fail.
  using Fault = std::function<int(Step step, std::string_view name)>;

  static constexpr std::size_t sector = 512;
  /// As an errno of a fault: nothing happens at all, as when who asks for it is dead.
  static constexpr int nothing_happens = 0x7FFF;

  Disk();

  const NodePointer& root() const { return root_; }
  void set_fault(Fault fault) { fault_ = std::move(fault); }

  static NodePointer find(const Node& folder, std::string_view name);
  /// `made` is what is there then; EEXIST if the name is taken.
  int make(Node& folder, std::string_view name, bool is_folder, NodePointer& made);
  int remove(Node& folder, std::string_view name);
  int rename(Node& folder, std::string_view from, std::string_view to);

  int write(Node& file, std::string_view name, std::uint64_t offset, std::string_view bytes);
  int truncate(Node& file, std::string_view name, std::uint64_t size);
  int sync(Node& node, std::string_view name, Random& chance);
  static std::string read(const Node& file, std::uint64_t offset, std::size_t count);

  void cut_power(Random& chance);

  /// Of all files as programs see them.
  std::uint64_t bytes() const;

 private:
  int ask(Step step, std::string_view name) const { return fault_ ? fault_(step, name) : 0; }
  static void apply(std::string& content, const Node::Edit& edit);
  static void relink(Node::Names& names, const Node::Relink& change);
  void change_names(Node& folder, Node::Relink change);
  void fail_sync(Node& node, Random& chance);
  void cut(Node& node, Random& chance);

  Fault fault_;
  std::uint64_t last_number_ = 0;
  NodePointer root_;
};

}  // namespace duet::simulate
