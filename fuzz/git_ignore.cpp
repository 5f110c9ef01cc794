// A line of a .gitignore, and a path: the pattern matches what git's own way of matching matches. That way goes back
// and tries again, and is kept here as it is in git's wildmatch.c and dir.c, without its shortcuts.

#include "pattern/git_ignore.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"

namespace {

std::size_t steps_left = 0;  // what takes too long is not compared

bool is_in_named_class(std::string_view name, unsigned char c, bool& known) {
  known = true;
  const bool ascii = c < 128;
  if (name == "alnum") return ascii && std::isalnum(c) != 0;
  if (name == "alpha") return ascii && std::isalpha(c) != 0;
  if (name == "blank") return c == ' ' || c == '\t';
  if (name == "cntrl") return ascii && std::iscntrl(c) != 0;
  if (name == "digit") return ascii && std::isdigit(c) != 0;
  if (name == "graph") return ascii && std::isgraph(c) != 0;
  if (name == "lower") return ascii && std::islower(c) != 0;
  if (name == "print") return ascii && std::isprint(c) != 0;
  if (name == "punct") return ascii && std::ispunct(c) != 0;
  if (name == "space") return c == ' ' || c == '\t' || c == '\n' || c == '\r';
  if (name == "upper") return ascii && std::isupper(c) != 0;
  if (name == "xdigit") return ascii && std::isxdigit(c) != 0;
  known = false;
  return false;
}

// The class at `p`, behind its bracket; false in `valid` if it is none. Moves `p` behind it.
bool class_has(const char*& p, unsigned char t, bool& valid) {
  const auto uc = [](char c) { return static_cast<unsigned char>(c); };
  valid = false;
  const bool negated = *p == '!' || *p == '^';
  if (negated) ++p;
  unsigned char before = 0;
  bool matched = false;
  do {
    unsigned char c = uc(*p);
    if (c == 0) return false;
    if (c == '\\') {
      c = uc(*++p);
      if (c == 0) return false;
      matched = matched || t == c;
    } else if (c == '-' && before != 0 && p[1] != 0 && p[1] != ']') {
      c = uc(*++p);
      if (c == '\\') c = uc(*++p);
      if (c == 0) return false;
      matched = matched || (t <= c && t >= before);
      c = 0;
    } else if (c == '[' && p[1] == ':') {
      const char* const name = p + 2;
      const char* close = name;
      while (*close != 0 && *close != ']') ++close;
      if (*close == 0) return false;
      if (close == name || close[-1] != ':') {
        matched = matched || t == '[';
      } else {
        bool known = false;
        const bool in = is_in_named_class(std::string_view(name, static_cast<std::size_t>(close - 1 - name)), t, known);
        if (!known) return false;
        matched = matched || in;
        p = close;
        c = 0;
      }
    } else {
      matched = matched || t == c;
    }
    before = c;
  } while (*++p != ']');
  ++p;
  valid = true;
  return matched != negated;
}

bool wild(const char* const pattern, const char* p, const char* t, bool paths) {
  if (steps_left == 0 || --steps_left == 0) return false;
  for (; *p != 0; ++t) {
    if (*p == '*') {
      const char* const first = p;
      while (*p == '*') ++p;
      const bool whole_name = p - first > 1 && (first == pattern || first[-1] == '/') &&
                              (*p == 0 || *p == '/' || (p[0] == '\\' && p[1] == '/'));
      const bool spans = !paths || whole_name;
      if (paths && whole_name && *p == '/' && wild(pattern, p + 1, t, paths)) return true;
      for (;; ++t) {
        if (wild(pattern, p, t, paths)) return true;
        if (*t == 0 || (!spans && *t == '/')) return false;
      }
    }
    if (*t == 0) return false;
    if (*p == '?') {
      if (paths && *t == '/') return false;
      ++p;
    } else if (*p == '[') {
      bool valid = false;
      ++p;
      const bool has = class_has(p, static_cast<unsigned char>(*t), valid);
      if (!valid || !has || (paths && *t == '/')) return false;
    } else {
      if (*p == '\\') ++p;
      if (*p != *t || *p == 0) return false;
      ++p;
    }
  }
  return *t == 0;
}

std::string without_blanks(std::string line) {
  std::size_t last_blank = std::string::npos;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') {
      if (last_blank == std::string::npos) last_blank = i;
      continue;
    }
    if (line[i] == '\\' && ++i == line.size()) return line;
    last_blank = std::string::npos;
  }
  return last_blank == std::string::npos ? line : line.substr(0, last_blank);
}

bool git_matches(std::string line, const std::string& path, bool is_folder) {
  if (line.empty() || line[0] == '#') return false;
  line = without_blanks(line);
  if (line.starts_with('!')) line.erase(0, 1);
  const bool for_folders = line.ends_with('/');
  if (for_folders) line.pop_back();
  if (for_folders && !is_folder) return false;
  if (line.find('/') == std::string::npos) {
    return wild(line.c_str(), line.c_str(), path.c_str() + (path.rfind('/') + 1), false);
  }
  if (line.starts_with('/')) line.erase(0, 1);
  const std::size_t literal = std::min(line.find_first_of("*?[\\"), line.size());
  if (path.compare(0, literal, line, 0, literal) != 0) return false;
  const std::string rest = line.substr(literal);
  return wild(rest.c_str(), rest.c_str(), path.c_str() + literal, true);
}

// Names with slashes between them, as there are on a disk.
bool is_path(std::string_view path) {
  return !path.empty() && !path.starts_with('/') && !path.ends_with('/') && path.find("//") == path.npos &&
         path.find('\0') == path.npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\n');
  if (end == text.npos || size > 300) return 0;
  const std::string line(text.substr(0, end));
  const std::string path(text.substr(end + 1));
  if (line.find('\0') != line.npos || line.ends_with('\r') || !is_path(path)) return 0;
  const auto pattern = duet::pattern::GitPattern::parse(line);
  for (const bool is_folder : {false, true}) {
    steps_left = 100'000;
    const bool expected = git_matches(line, path, is_folder);
    if (steps_left == 0) continue;
    require((pattern && pattern->matches(path, is_folder)) == expected, "the pattern matches what git's way matches");
  }
  return 0;
}
