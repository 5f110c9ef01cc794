#include "app/commands/test_migrations.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace duet::app {
namespace {

#ifdef DUET_TEST_METHODS
std::vector<std::string> names_and_texts() {
  std::vector<std::string> out;
  const char* const folder = std::getenv("DUET_RPC_TEST_MIGRATIONS");
  if (folder == nullptr) return out;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    out.push_back(path.filename().string());
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return out;
}
#else
std::vector<std::string> names_and_texts() { return {}; }
#endif

}  // namespace

TestMigrations::TestMigrations() : texts_(names_and_texts()) {
  const auto own = task::postgres::migration_files();
  files_.assign(own.begin(), own.end());
  for (std::size_t i = 0; i + 1 < texts_.size(); i += 2)
    files_.push_back({std::atoi(texts_[i].c_str()), texts_[i], texts_[i + 1]});
}

}  // namespace duet::app
