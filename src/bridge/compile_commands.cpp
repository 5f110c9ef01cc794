#include "bridge/compile_commands.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "bridge/source_file.h"

namespace duet::bridge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_entries = 1000;  // of a folder, so that nobody waits for a heap of files
constexpr char commands_name[] = "compile_commands.json";

bool is_file(const fs::path& path) {
  std::error_code fault;
  return fs::is_regular_file(path, fault);
}

// What clangd finds in a folder above a file: how it is compiled, or where that stands.
bool has_commands(const fs::path& folder) {
  if (is_file(folder / commands_name) || is_file(folder / "compile_flags.txt")) return true;
  constexpr std::size_t most = 64U * 1024;
  const std::optional<SourceFile> config = read_source_file(folder / ".clangd", most);
  return config && config->bytes.find("CompilationDatabase") != std::string::npos;
}

std::vector<fs::path> folders_in(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code fault;
  fs::directory_iterator entries(folder, fs::directory_options::skip_permission_denied, fault);
  for (std::size_t seen = 0; !fault && entries != fs::directory_iterator() && seen < most_entries; ++seen) {
    const fs::directory_entry& entry = *entries;
    std::error_code no_folder;
    if (entry.path().filename().native().starts_with(prefix) && entry.is_directory(no_folder)) {
      found.push_back(entry.path());
    }
    entries.increment(fault);
  }
  std::ranges::sort(found);  // of equally new ones always the same
  return found;
}

}  // namespace

bool is_clangd(const Definition& definition) {
  if (definition.command.empty()) return false;
  const std::string name = fs::path(definition.command.front()).filename();
  const bool is_told = std::ranges::any_of(
      definition.command, [](const std::string& word) { return word.find("-compile-commands-dir") != word.npos; });
  return !is_told && (name == "clangd" || name.starts_with("clangd-"));
}

std::optional<std::string> find_compile_commands(const std::string& root) {
  const fs::path top(root);
  if (has_commands(top)) return std::nullopt;
  std::vector<fs::path> folders = folders_in(top, "build");
  for (fs::path& folder : folders_in(top / "build", "")) folders.push_back(std::move(folder));
  std::optional<std::string> newest;
  fs::file_time_type newest_time;
  for (const fs::path& folder : folders) {
    if (!is_file(folder / commands_name)) continue;
    std::error_code fault;
    const fs::file_time_type time = fs::last_write_time(folder / commands_name, fault);
    if (fault || (newest && time <= newest_time)) continue;
    newest = folder.string();
    newest_time = time;
  }
  return newest;
}

bool finds_compile_commands(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  for (;; folder = folder.parent_path()) {
    if (has_commands(folder) || is_file(folder / "build" / commands_name)) return true;
    if (folder == folder.parent_path()) return false;
  }
}

}  // namespace duet::bridge
