#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "app/project/project.h"

namespace duet::app {

/// A project of its own for a test, gone with it.
class TemporaryProject {
 public:
  TemporaryProject() {
    std::string name = testing::TempDir() + "duet-project-XXXXXX";
    path_ = std::filesystem::canonical(mkdtemp(name.data()));
    project_ = find_project(path_.string());
  }
  TemporaryProject(const TemporaryProject&) = delete;
  TemporaryProject& operator=(const TemporaryProject&) = delete;
  ~TemporaryProject() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const Project& project() const { return project_; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path state() const { return path_ / ".aiwg/daemon"; }

  static void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }
  static std::string read(const std::filesystem::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::filesystem::path path_;
  Project project_;
};

}  // namespace duet::app
