#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace duet::task {

/// The files of the store, in the folder of the daemon.
inline constexpr char store_file[] = "tasks.db";
inline constexpr char store_log_file[] = "tasks.db-wal";
inline constexpr char store_index_file[] = "tasks.db-shm";
inline constexpr char output_folder[] = "tasks";
inline constexpr std::uint32_t store_application_id = 0x64756574;  // "duet", in the header of the file

/// What is there of a store.
enum class StoreTrace : std::uint8_t { none, remains, file };

/// `remains`: the file is gone, but what goes with it is not, so that beginning anew would hide a loss.
StoreTrace find_store(int folder);

/// What is wrong with the files of a store that nobody has open, as a sentence for people; none if they are whole as
/// far as their sizes and the write-ahead log tell. It looks for what SQLite takes for a smaller database: files that
/// were cut off. Nothing is changed. Throws std::system_error if a file cannot be read.
std::optional<std::string> find_damage(int folder);

/// Which files the store writes to, so that it is noticed when they are removed or replaced.
class StoreIdentity {
 public:
  /// `folder_holds` tells whether the folder itself is where it was; it may be asked by any thread.
  explicit StoreIdentity(int folder, std::function<bool()> folder_holds = {});
  /// The names still lead to the same files.
  bool holds() const;

 private:
  struct File {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const File&) const = default;
  };
  using Files = std::array<File, 3>;
  Files look() const;

  int folder_;
  std::function<bool()> folder_holds_;
  Files files_;
};

}  // namespace duet::task
