#include "duet/framing/damaged_stream_test.h"

#include <algorithm>
#include <regex>

#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

using Part = DamagedStream::Part;

std::string header_of(std::size_t length) { return "Content-Length: " + std::to_string(length) + "\r\n\r\n"; }

// A header block that is fine as it stands and announces `length`, by a pattern instead of a reader.
bool is_header_for(const std::string& text, std::size_t length) {
  static const std::regex pattern(R"(((?:[A-Za-z0-9-]+:[^\n]*\r\n)+)\r\n)");
  static const std::regex length_line(R"(Content-Length:([^\n]*)\r\n)", std::regex::icase);
  std::smatch match;
  if (!std::regex_match(text, match, pattern)) return false;
  const std::string lines = match[1];
  const std::regex good("[ \\t]*0*" + std::to_string(length) + "[ \\t]*");
  const std::sregex_iterator first(lines.begin(), lines.end(), length_line);
  return first != std::sregex_iterator() && std::all_of(first, std::sregex_iterator(), [&](const std::smatch& found) {
           return std::regex_match(found[1].str(), good);
         });
}

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  DamagedStream stream() {
    for (std::size_t count = 2 + pick(8); count > 0; --count) {
      // Mostly a message behind each damage, so that each must have a fault of its own.
      const bool damage = pick(2) == 0 && (!last_was_damage() || pick(5) == 0);
      damage ? add_damage() : add_intact(body());
    }
    if (pick(4) == 0) cut_the_end();
    return std::move(out_);
  }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  bool last_was_damage() const { return !out_.parts.empty() && out_.parts.back().message.empty(); }

  template <typename List>
  auto one_of(const List& list) {
    return *(std::begin(list) + static_cast<std::ptrdiff_t>(pick(std::size(list))));
  }

  std::string body() {
    static const std::vector<std::string> texts = {"",
                                                   "x",
                                                   "é€",
                                                   R"(\r\n\r\n)",
                                                   R"(Content-Length: 12\r\n\r\n{})",
                                                   "Content-Length: 12 ",
                                                   "}Content-Length: 7;",
                                                   R"(\")",
                                                   "{[",
                                                   "Content-Type: a/b"};
    const std::string id = std::to_string(++last_id_);
    switch (pick(5)) {
      case 0:
        return "{\"id\":" + id + "}";
      case 1:
        return "{\r\n\r\n\"id\" :\r\n " + id + ",\r\n\r\n\"a\": [1, 2]\r\n\r\n}";
      case 2:
        return "{\"id\":" + id + ",\"text\":\"" + std::string(pick(400), 'x') + one_of(texts) + "\"}";
      default:
        return "{\"jsonrpc\":\"2.0\",\"id\":" + id + ",\"method\":\"m\",\"params\":{\"t\":\"" + one_of(texts) + "\"}}";
    }
  }

  void add_intact(const std::string& body) {
    if (!next_is_plain_ && pick(6) == 0)
      out_.bytes += one_of(std::vector<std::string>{"X-A: b\r\n", "content-type: application/vscode-jsonrpc\r\n"});
    next_is_plain_ = false;
    out_.bytes += header_of(body.size()) + body;
    out_.parts.push_back({body});
  }

  void add_damage(const std::string& bytes, unsigned places = 1) {
    // What one lost must not be found at the beginning of the next, nor the next be the end of a header line.
    if (last_was_damage() && !bytes.starts_with("Content-Length")) out_.bytes += "#\r\n";
    out_.bytes += bytes;
    out_.parts.push_back({{}, places});
  }

  void add_damage() {
    switch (pick(9)) {
      case 0:
      case 1:
        return edit_once();
      case 2:
        return edit_often();
      case 3:
        return wrong_length();
      case 4:
        return add_damage(header_of(20) +
                          one_of(std::vector<std::string>{"{\"a\":\"unterminated  }", "Content-Length: 8,  x",
                                                          "\xFF                   "}));
      case 5:
        return junk();
      case 6:
        return cut_a_frame();
      case 7:
        return two_lengths();
      default:
        return missing_blank_line();
    }
  }

  void edit(std::string& bytes) {
    static const std::string inserted = "x0 \r\n:{}\"C-\xC3\t";
    const std::size_t at = pick(bytes.size());
    switch (pick(3)) {
      case 0:
        bytes.erase(at, 1);
        break;
      case 1:
        bytes.insert(at, 1, one_of(inserted));
        break;
      default:
        bytes.insert(at, 1, bytes[at]);
        break;
    }
  }

  // One byte dropped, inserted or doubled anywhere in a frame. If a whole frame is still there, in front of
  // or behind the damage, it must be delivered.
  void edit_once() {
    const std::string text = body();
    const std::string header = header_of(text.size());
    std::string edited = header + text;
    edit(edited);
    if (edited == header + text || is_harmless(edited, text)) return add_intact(text);
    const std::string survivor = edited.starts_with(header) ? edited.substr(header.size(), text.size()) : "";
    if (survivor.size() == text.size() && is_json(survivor)) out_.parts.push_back({survivor});
    add_damage(edited);
    if (edited.ends_with(header + text)) out_.parts.push_back({text});
  }

  static bool is_harmless(const std::string& edited, const std::string& text) {
    return edited.ends_with(text) && is_header_for(edited.substr(0, edited.size() - text.size()), text.size());
  }

  void edit_often() {
    const std::string text = body();
    std::string frame = header_of(text.size()) + text;
    const auto count = static_cast<unsigned>(2 + pick(4));
    for (unsigned i = 0; i < count; ++i) edit(frame);
    add_damage(frame, count);
  }

  void wrong_length() {
    const std::string text = body();
    std::size_t length = text.size();
    while (length == text.size()) {
      length = one_of(std::vector<std::size_t>{pick(text.size()), text.size() + pick(300), 10'485'761 + pick(1000),
                                               99'999'999'999});
    }
    add_damage(header_of(length) + text);
  }

  // If the last one is right, there is a whole frame behind the damage.
  void two_lengths() {
    const std::string text = body();
    const std::string line = "Content-Length: " + std::to_string(text.size() + 1 + pick(300)) + "\r\n";
    if (last_was_damage()) out_.bytes += "#\r\n";  // half a name before the first one would make it another header
    if (pick(2) == 0) {
      add_damage(line + header_of(text.size()) + text);
      out_.parts.push_back({text});
    } else {
      const std::string header = header_of(text.size());
      add_damage(header.substr(0, header.size() - 2) + line + "\r\n" + text);
    }
  }

  void junk() {
    static const std::vector<std::string> pieces = {"junk",
                                                    "Content-Length",
                                                    "Content-Length:",
                                                    "Content-Length: 12",
                                                    "Content-Length: 7\r\n",
                                                    "Content-Length: x\r\n",
                                                    "\r\n",
                                                    "\r",
                                                    "\n",
                                                    "X: y\r\n",
                                                    "{\"a\":",
                                                    "\"Content-Length: 9\"",
                                                    "Content-Type: application/vscode-jsonrpc\r\n",
                                                    "\xFF",
                                                    " ",
                                                    ":"};
    // Its first line is malformed, and behind a frame that was cut it cannot be taken for the missing byte.
    std::string bytes = "#";
    for (std::size_t i = pick(8); i > 0; --i) bytes += one_of(pieces);
    const std::size_t blank_line = bytes.rfind("\r\n\r\n");
    if (blank_line != std::string::npos && bytes.find("Content-Length") < blank_line) bytes = "#\r\n";
    add_damage(bytes);
  }

  void cut_a_frame() {
    const std::string text = body();
    const std::string frame = header_of(text.size()) + text;
    std::string cut = frame.substr(0, 1 + pick(frame.size() - 1));
    // A whole header line is no damage to a header with the same length behind it.
    if (cut.ends_with("\r\n") && !cut.ends_with("\r\n\r\n")) cut += '#';
    add_damage(cut);
    // Half a name is no damage either if it goes on as the name of another header.
    next_is_plain_ = true;
  }

  void missing_blank_line() {
    const std::string text = body();
    const std::string header = header_of(text.size());
    add_damage(header.substr(0, header.size() - 2) + text);
  }

  void cut_the_end() {
    const Part last = out_.parts.back();
    if (last.message.empty()) return;
    const std::size_t size = header_of(last.message.size()).size() + last.message.size();
    out_.bytes.resize(out_.bytes.size() - 1 - pick(size - 1));
    out_.parts.back() = {{}, 1};
  }

  std::mt19937 random_;
  int last_id_ = 0;
  bool next_is_plain_ = false;
  DamagedStream out_;
};

}  // namespace

DamagedStream damaged_stream(std::uint32_t seed) { return Generator(seed).stream(); }

std::string complaint(const DamagedStream& stream, const std::vector<std::string>& events) {
  auto event = events.begin();
  unsigned fewest = 0;
  unsigned most = 0;
  unsigned survivors = 0;
  // What was said since the last intact message, up to here.
  const auto gap_is_right = [&](auto end) {
    const auto faults =
        static_cast<unsigned>(std::count_if(event, end, [](const auto& text) { return text.starts_with("! "); }));
    const auto others = static_cast<unsigned>(end - event) - faults;
    return faults >= fewest && faults <= most && others <= survivors;
  };
  for (const Part& part : stream.parts) {
    if (part.message.empty()) {
      if (part.places == 1) fewest = 1;
      if (part.places > 1) ++survivors;
      most += part.places;
      continue;
    }
    const auto delivered = std::find(event, events.end(), part.message);
    if (delivered == events.end()) return "not delivered: " + part.message;
    if (!gap_is_right(delivered)) return "wrong before " + part.message;
    event = delivered + 1;
    fewest = most = survivors = 0;
  }
  return gap_is_right(events.end()) ? "" : "wrong at the end";
}

}  // namespace duet::framing
