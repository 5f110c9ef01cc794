#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace duet::pattern {

/// One pattern of a `.gitignore`, compared as git does it, byte by byte: with git's own reading of `**`, classes and
/// backslashes. A match takes time in proportion to the pattern times the path, whatever somebody has written there.
class GitPattern {
 public:
  /// A line without its end; none if git makes nothing of it.
  static std::optional<GitPattern> parse(std::string_view line);

  bool is_negated() const { return negated_; }
  /// What a match costs for each byte of a path, roughly.
  std::size_t cost() const { return 1 + tokens_.size(); }
  /// `path` from the folder of the file that has the pattern.
  bool matches(std::string_view path, bool is_folder) const;

 private:
  struct Token {
    enum class Kind : std::uint8_t {
      one,     ///< any byte of the set
      run,     ///< any number of bytes within a name
      all,     ///< any number of bytes
      folders  ///< of `**/`: the next two tokens, or neither
    };
    Kind kind = Kind::one;
    std::size_t set = 0;  ///< which
  };
  using Bytes = std::bitset<256>;
  using States = std::vector<char>;

  void compile(std::string_view text, bool starts_name);
  void add_stars(std::string_view text, std::size_t& at, bool starts_name);
  void add_one(const Bytes& bytes);
  void add_byte(char byte);
  void reach(States& states, std::size_t state) const;
  bool matches_rest(std::string_view text) const;

  bool negated_ = false;
  bool for_folders_ = false;
  bool for_names_ = false;  ///< else for paths
  bool never_ = false;      ///< what is written there matches nothing
  std::string literal_;     ///< what comes first, or all of it
  bool is_literal_ = false;
  bool ends_with_ = false;  ///< `*` and then literal_
  std::vector<Token> tokens_;
  std::vector<Bytes> sets_;
};

/// What a `.gitignore` says. The last pattern that matches decides. Patterns count up to a sum of 20,000 parts (each
/// one, and its wildcards, classes and bytes behind the first of these): a file with more was written to cost time.
class GitIgnore {
 public:
  GitIgnore() = default;
  explicit GitIgnore(std::string_view text);

  struct Match {
    std::size_t line;  ///< from 1
    bool ignored;      ///< else it is taken back
    bool operator==(const Match&) const = default;
  };
  /// Of a path from the folder of this file.
  std::optional<Match> match(std::string_view path, bool is_folder) const;
  bool is_empty() const { return patterns_.empty(); }

 private:
  struct Numbered {
    std::size_t line;
    GitPattern pattern;
  };
  std::vector<Numbered> patterns_;
};

}  // namespace duet::pattern
