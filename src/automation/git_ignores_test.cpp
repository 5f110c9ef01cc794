#include "automation/git_ignores.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "automation/watch_scope.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::automation {
namespace {

namespace fs = std::filesystem;

/// Trees and patterns out of a few letters, so that much of it meets.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return random_() % count; }
  const std::string& one_of(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

  std::string name() {
    static const std::vector<std::string> names{"a",  "b",   "ab", "a.o", "b.o", "A",   "foo", "foobar", "x y", "a ",
                                                "#c", "!d",  "é",  "-",   "[",   "]",   "\\",  "bar",    "a-b", "^",
                                                "b]", "a\t", "1",  "z9",  "*",   "a*b", "~",   "a\\",    "t\v", "u\n"};
    return one_of(names);
  }
  std::string piece() {
    static const std::vector<std::string> pieces{
        "a",           "b",         "ab",        "foo",   "bar",         "*",           "**",
        "?",           "*.o",       "[ab]",      "[!a]",  "[^b]",        "[a-z]",       "[]]",
        "[!]a]",       "[]-a]",     "[a-]",      "[\\]]", "[[:alpha:]]", "[[:space:]]", "[[:upper:][:digit:]]",
        "[[:punct:]]", "[[:foo:]]", "[[:alpha]", "[a",    "\\a",         "\\*",         "\\",
        "\\ ",         " ",         "#c",        "!d",    "é",           "A",           "1",
        ".",           "-",         "[a-\\]]",   "[--0]", "[\\\\-^]",    "\t",          "***",
        "\\[",         "[^]]",      "x y",       "~",     "[[:cntrl:]]", "[[:print:]]", "[[:graph:]]",
        "[z-a]",       "\\\\",      "[!\\]",     "\\!d"};
    return one_of(pieces);
  }
  std::string pattern() {
    std::string line = below(4) == 0 ? "!" : "";
    if (below(4) == 0) line += '/';
    for (std::size_t names = 1 + below(3); names > 0; --names) {
      for (std::size_t pieces = 1 + below(2); pieces > 0; --pieces) line += below(3) == 0 ? name() : piece();
      if (names > 1) line += below(12) == 0 ? "\\/" : "/";
    }
    if (below(4) == 0) line += '/';
    if (below(8) == 0) line += ' ';
    return line;
  }
  std::string ignore_file() {
    std::string text = below(10) == 0 ? "\xEF\xBB\xBF" : "";
    for (std::size_t lines = 1 + below(8); lines > 0; --lines) {
      text += below(12) == 0 ? "# " + pattern() : pattern();
      if (lines > 1 || below(3) > 0) text += below(6) == 0 ? "\r\n" : "\n";
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

/// A repository with the least that git asks of one, and several trees in it: git is asked once for all of them.
class Repository {
 public:
  static constexpr int trees = 10;

  Repository(const fs::path& root, Generator& generator) : root_(root), generator_(generator) {
    fs::create_directories(root / ".git/objects");
    fs::create_directories(root / ".git/refs");
    fs::create_directories(root / ".git/info");
    std::ofstream(root / ".git/HEAD") << "ref: refs/heads/main\n";
    if (generator.below(3) == 0) ignores_.exclude(put(".git/info/exclude"));
    fill("", 0);
    for (int tree = 1; tree < trees; ++tree) {
      const std::string folder = "tree" + std::to_string(tree);
      fs::create_directory(root / folder);
      paths_[folder] = true;
      fill(folder, 0);
    }
  }

  const std::map<std::string, bool>& paths() const { return paths_; }  ///< and whether it is a folder

  /// As one who walks down the tree finds it: what is in an ignored folder is not looked at.
  bool is_ignored(const std::string& path) const {
    for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1)) {
      if (ignores_.ignored_by(path.substr(0, end), true)) return true;
    }
    return ignores_.ignored_by(path, paths_.at(path)).has_value();
  }

 private:
  void fill(const std::string& folder, int depth) {
    if (depth == 0 || generator_.below(3) == 0) ignores_.put(folder, put(join_path(folder, ".gitignore")));
    for (std::size_t entries = 2 + generator_.below(4); entries > 0; --entries) {
      const std::string path = join_path(folder, generator_.name());
      if (paths_.contains(path)) continue;
      const bool is_folder = depth < 2 && generator_.below(3) == 0;
      paths_[path] = is_folder;
      if (!is_folder) {
        std::ofstream(root_ / path) << "";
        continue;
      }
      fs::create_directory(root_ / path);
      fill(path, depth + 1);
    }
  }
  std::string put(const std::string& path) {
    std::string text = generator_.ignore_file();
    std::ofstream(root_ / path, std::ios::binary) << text;
    return text;
  }

  fs::path root_;
  Generator& generator_;
  std::map<std::string, bool> paths_;
  GitIgnores ignores_;
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  std::array<char, 65'536> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe.get())) out.append(buffer.data(), count);
  return out;
}

// `source NUL line NUL pattern NUL path NUL` for each.
std::set<std::string> ignored_by_git(const fs::path& root, const Repository& repository) {
  {
    std::ofstream list(root / ".git/list", std::ios::binary);
    for (const auto& [path, is_folder] : repository.paths()) list << path << '\0';
  }
  const std::string out = output_of("cd '" + root.string() + "' && HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent " +
                                    "GIT_CONFIG_NOSYSTEM=1 git check-ignore --no-index --stdin -v -n -z < .git/list");
  std::set<std::string> ignored;
  std::vector<std::string> fields;
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t end = out.find('\0', at);
    fields.push_back(out.substr(at, end - at));
    at = end + 1;
    if (fields.size() < 4) continue;
    if (!fields[2].empty() && fields[2].front() != '!') ignored.insert(fields[3]);
    fields.clear();
  }
  return ignored;
}

TEST(GitIgnores, AgreeWithGitOnEveryPathOfTwoHundredTrees) {
  if (output_of("git --version 2> /dev/null").empty()) GTEST_SKIP() << "there is no git";
  std::size_t compared = 0;
  std::size_t ignored = 0;
  for (unsigned seed = 1; seed <= 200 / Repository::trees; ++seed) {
    const transport::TemporaryFolder folder;
    Generator generator(seed);
    const Repository repository(folder.path(), generator);
    const std::set<std::string> by_git = ignored_by_git(folder.path(), repository);
    for (const auto& [path, is_folder] : repository.paths()) {
      ASSERT_EQ(repository.is_ignored(path), by_git.contains(path)) << "seed " << seed << ": " << path;
      ++compared;
    }
    ignored += by_git.size();
  }
  EXPECT_GT(compared, 1'000U);
  EXPECT_GT(ignored, 200U) << "git has said something";
}

}  // namespace
}  // namespace duet::automation
