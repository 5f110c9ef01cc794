#include "bridge/choice.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace duet::bridge {
namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The folders from the file's own upward, the nearest first.
std::vector<std::string> folders_upward(const std::string& path, const std::string& project) {
  std::vector<std::string> folders;
  std::string folder = path;
  do {
    folder.resize(folder.rfind('/'));
    folders.push_back(folder.empty() ? "/" : folder);
  } while (!folder.empty() && folder != project);
  return folders;
}

// Which of these a file name ends with, and the language it stands for. Whole names have no dot in front.
constexpr std::pair<std::string_view, std::string_view> languages[] = {
    {".bash", "shellscript"},
    {".bat", "bat"},
    {".c", "c"},
    {".c++", "cpp"},
    {".cc", "cpp"},
    {".clj", "clojure"},
    {".cpp", "cpp"},
    {".cs", "csharp"},
    {".css", "css"},
    {".cts", "typescript"},
    {".cu", "cuda-cpp"},
    {".cxx", "cpp"},
    {".dart", "dart"},
    {".diff", "diff"},
    {".ex", "elixir"},
    {".exs", "elixir"},
    {".fs", "fsharp"},
    {".go", "go"},
    {".h", "cpp"},
    {".h++", "cpp"},
    {".hh", "cpp"},
    {".hpp", "cpp"},
    {".hs", "haskell"},
    {".html", "html"},
    {".hxx", "cpp"},
    {".inl", "cpp"},
    {".java", "java"},
    {".js", "javascript"},
    {".json", "json"},
    {".jsx", "javascriptreact"},
    {".kt", "kotlin"},
    {".less", "less"},
    {".lua", "lua"},
    {".m", "objective-c"},
    {".md", "markdown"},
    {".mjs", "javascript"},
    {".mm", "objective-cpp"},
    {".mts", "typescript"},
    {".php", "php"},
    {".pl", "perl"},
    {".pm", "perl"},
    {".ps1", "powershell"},
    {".py", "python"},
    {".pyi", "python"},
    {".r", "r"},
    {".rb", "ruby"},
    {".rs", "rust"},
    {".scala", "scala"},
    {".scss", "scss"},
    {".sh", "shellscript"},
    {".sql", "sql"},
    {".swift", "swift"},
    {".tex", "latex"},
    {".toml", "toml"},
    {".ts", "typescript"},
    {".tsx", "typescriptreact"},
    {".xml", "xml"},
    {".yaml", "yaml"},
    {".yml", "yaml"},
    {".zig", "zig"},
    {".zsh", "shellscript"},
    {"Dockerfile", "dockerfile"},
    {"Makefile", "makefile"},
    {".cjs", "javascript"},
    {".bashrc", "shellscript"},
    {".bash_profile", "shellscript"},
};

}  // namespace

std::vector<Definition> well_known_servers() {
  return {
      {.name = "clangd",
       .command = {"clangd", "--log=error"},  // else it writes several lines about every message
       .files = {"*.c", "*.cc", "*.cpp", "*.cxx", "*.c++", "*.h", "*.hh", "*.hpp", "*.hxx", "*.h++", "*.inl", "*.m",
                 "*.mm", "*.cu"},
       .roots = {"compile_commands.json", "compile_flags.txt", ".clangd", ".git"}},
      {.name = "pylsp",
       .command = {"pylsp"},
       .files = {"*.py", "*.pyi"},
       .roots = {"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", ".git"},
       .encoding = "utf-32",
       .settles = true},
      {.name = "gopls",
       .command = {"gopls"},
       .files = {"*.go", "go.mod", "go.work"},
       .roots = {"go.work", "go.mod", ".git"}},
      {.name = "rust-analyzer", .command = {"rust-analyzer"}, .files = {"*.rs"}, .roots = {"Cargo.toml", ".git"}},
      {.name = "typescript-language-server",
       .command = {"typescript-language-server", "--stdio"},
       .files = {"*.ts", "*.tsx", "*.mts", "*.cts", "*.js", "*.jsx", "*.mjs", "*.cjs"},
       .roots = {"tsconfig.json", "jsconfig.json", "package.json", ".git"},
       // Else it may fetch packages from the network by itself, and a lesser server answers for as long as the project
       // is being loaded.
       .options = R"({"disableAutomaticTypingAcquisition":true,"tsserver":{"useSyntaxServer":"never"}})",
       .settles = true},
      {.name = "bash-language-server",
       .command = {"bash-language-server", "start"},
       .files = {"*.sh", "*.bash", ".bashrc", ".bash_profile"},
       .roots = {".git"},
       .settles = true},
  };
}

std::vector<Definition> with_well_known(std::vector<Definition> settings) {
  for (Definition& known : well_known_servers()) {
    const auto named = std::ranges::find(settings, known.name, &Definition::name);
    if (named == settings.end()) {
      settings.push_back(std::move(known));
      continue;
    }
    named->settles = named->command.empty() || file_name(named->command.front()) == file_name(known.command.front())
                         ? known.settles
                         : named->settles;
    if (named->command.empty()) named->command = std::move(known.command);
    if (named->files.empty()) named->files = std::move(known.files);
    if (named->roots.empty()) named->roots = std::move(known.roots);
    if (named->options.empty()) named->options = std::move(known.options);
    if (named->encoding.empty()) named->encoding = std::move(known.encoding);
  }
  return settings;
}

FileChoice::FileChoice(const std::vector<Definition>& definitions) {
  for (const Definition& definition : definitions) {
    std::vector<pattern::Glob>& globs = globs_.emplace_back();
    for (const std::string& text : definition.files) {
      auto parsed = pattern::parse_glob(text);
      if (auto* glob = std::get_if<pattern::Glob>(&parsed)) globs.push_back(std::move(*glob));
    }
  }
}

std::optional<std::size_t> FileChoice::choose(std::string_view path) const {
  const std::string_view name = file_name(path);
  const auto fits = [name](const pattern::Glob& glob) { return glob.matches(name); };
  for (std::size_t i = 0; i < globs_.size(); ++i) {
    if (std::ranges::any_of(globs_[i], fits)) return i;
  }
  return std::nullopt;
}

std::string find_root(const std::vector<std::string>& markers, const std::string& path, const std::string& project) {
  const std::vector<std::string> folders = folders_upward(path, project);
  for (const std::string& marker : markers) {
    for (const std::string& folder : folders) {
      std::string candidate = folder;
      if (!candidate.ends_with('/')) candidate += '/';
      candidate += marker;
      if (access(candidate.c_str(), F_OK) == 0) return folder;
    }
  }
  return project;
}

std::string_view language_of(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const auto& [ending, language] : languages) {
    if (ending.starts_with('.') ? name.ends_with(ending) : name == ending) return language;
  }
  return "plaintext";
}

}  // namespace duet::bridge
