#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace duet::bridge {

/// What a server says that it is working on (`$/progress`), such as the index of a project. While it is, what it
/// answers may lack what it has not come to. Only work with a beginning counts, and of too much at once the first.
/// Pure.
class WorkProgress {
 public:
  static constexpr std::size_t most_works = 64;

  /// The params of a `$/progress`; nonsense says nothing.
  void take(std::string_view params);
  /// Another life of the server begins.
  void clear() { works_.clear(); }
  bool is_under_way() const { return !works_.empty(); }
  /// `indexing 40/120`, of one of them; empty if there is none.
  std::string text() const;

 private:
  struct Work {
    std::string title;
    std::string standing;
  };
  std::map<std::string, Work> works_;  // by token, as JSON text
};

}  // namespace duet::bridge
