#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace duet::transport {

/// A folder of its own for a test, gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = testing::TempDir() + "duet-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::filesystem::path path() const { return path_; }
  std::string file(const std::string& name) const { return path_ / name; }

  /// The path of a file whose length is exactly `length`, in folders that are made for it.
  std::string file_of_length(std::size_t length, const std::string& name) const {
    std::string folder = path_;
    const std::size_t wanted = length - name.size() - 1;
    while (folder.size() < wanted) {
      const std::size_t left = wanted - folder.size() - 1;
      folder += '/' + std::string(left <= 100 ? left : left <= 102 ? 50 : 100, 'f');
    }
    std::filesystem::create_directories(folder);
    return folder + '/' + name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace duet::transport
