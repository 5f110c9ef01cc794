#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1

#include "app/top/screen.h"

#include <curses.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#undef columns  // of term.h
#undef lines

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "app/project/failure.h"
#include "app/view/display_text.h"
#include "duet/rpc/utf8.h"

namespace duet::app::top {
namespace {

constexpr int escape_delay_ms = 25;  // between the bytes of one key
constexpr wchar_t unshowable = L'\uFFFD';

enum Pair : short { cyan_pair = 1, green_pair, yellow_pair, red_pair };

// The cells of a line are counted by us and by ncurses, which asks the C library: what the two do not agree on is not
// shown. So nothing on a line can move what stands behind it.
void append_cells(std::wstring& out, std::string_view character) {
  wchar_t wide = unshowable;
  mbstate_t state{};
  const std::size_t bytes = mbrtowc(&wide, character.data(), character.size(), &state);
  const auto columns = static_cast<int>(display_width(character));
  const bool agreed = bytes == character.size() && wcwidth(wide) == columns;
  if (!agreed && columns == 0) return;
  out += agreed ? wide : unshowable;
  if (!agreed) out.append(static_cast<std::size_t>(columns - 1), L' ');
}

std::wstring cells_of(std::string_view text) {
  std::wstring out;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(rpc::utf8_length(text.data(), text.data() + text.size()), 1);
    append_cells(out, text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out;
}

Key key_of(wint_t code, bool is_function_key) {
  using Kind = Key::Kind;
  if (!is_function_key) {
    if (code == L'\r' || code == L'\n') return {Kind::enter};
    if (code == L'\x1b') return {Kind::back};
    return code < 0x7F ? Key{Kind::character, static_cast<char>(code)} : Key{};
  }
  constexpr std::array<std::pair<wint_t, Kind>, 10> kinds{{
      {KEY_UP, Kind::up},
      {KEY_DOWN, Kind::down},
      {KEY_PPAGE, Kind::page_up},
      {KEY_NPAGE, Kind::page_down},
      {KEY_HOME, Kind::home},
      {KEY_END, Kind::end},
      {KEY_ENTER, Kind::enter},
      {KEY_RIGHT, Kind::enter},
      {KEY_LEFT, Kind::back},
      {KEY_BACKSPACE, Kind::back},
  }};
  const auto found = std::ranges::find(kinds, code, &std::pair<wint_t, Kind>::first);
  return {found == kinds.end() ? Kind::other : found->second};
}

// Of the C library for wide characters; other locales have other bytes, and what is drawn is UTF-8.
void use_utf8() {
  for (const char* const name : {"C.UTF-8", "C.utf8", "en_US.UTF-8", ""}) {
    if (setlocale(LC_CTYPE, name) != nullptr) return;
  }
}

std::string terminal_name() {
  const char* const name = std::getenv("TERM");
  return name == nullptr ? "" : name;
}

[[noreturn]] void refuse_terminal(const std::string& why) {
  throw Failure("top cannot draw on this terminal: " + why + "; 'task list' and 'events' work on any");
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  refuse_terminal("TERM is '" + name + "', which is not known here ('TERM=xterm-256color' may do)");
}

// tputs() wants a function without an object.
std::string& collected() {
  static std::string text;
  return text;
}

int collect(int c) {
  collected() += static_cast<char>(c);
  return c;
}

bool has_capability(const char* name) {
  const char* const text = tigetstr(name);
  return text != nullptr && text != reinterpret_cast<char*>(-1) && *text != '\0';
}

}  // namespace

struct Screen::Curses {
  SCREEN* terminal = nullptr;
  WINDOW* input = nullptr;  // nothing is drawn in it: reading a key from a window draws that
  bool coloured = false;

  attr_t attributes_of(Paint paint) const {
    const auto colour = [this](Pair pair) {
      return coloured ? static_cast<attr_t>(COLOR_PAIR(pair)) : attr_t{A_NORMAL};
    };
    switch (paint) {
      case Paint::strong:
        return A_BOLD;
      case Paint::name:
        return colour(cyan_pair);
      case Paint::good:
        return colour(green_pair);
      case Paint::warn:
        return A_BOLD | colour(yellow_pair);
      case Paint::fault:
        return A_BOLD | colour(red_pair);
      case Paint::faint:
        return A_DIM;
      default:
        return A_NORMAL;
    }
  }

  void write_line(int row, const Line& line) const {
    wmove(stdscr, row, 0);
    for (const Span& span : line.spans) {
      wattrset(stdscr, static_cast<int>(line.chosen ? A_REVERSE : attributes_of(span.paint)));
      const std::wstring cells = cells_of(span.text);
      waddnwstr(stdscr, cells.data(), static_cast<int>(cells.size()));
    }
    wattrset(stdscr, A_NORMAL);
    if (line.chosen) mvwchgat(stdscr, row, 0, -1, A_REVERSE, 0, nullptr);
  }
};

void check_terminal() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
    throw Failure("top draws on a terminal, and this is none: 'task list' and 'events' are for scripts");
  }
  const std::string name = terminal_name();
  if (name.empty()) refuse_terminal("TERM is not set");
  int known = 0;
  if (setupterm(name.c_str(), STDOUT_FILENO, &known) != OK) refuse_unknown(name);
  if (!has_capability("cup") || !has_capability("clear")) {
    refuse_terminal("TERM is '" + name + "', which cannot move its cursor");
  }
}

std::string leaving_sequence() {
  collected().clear();
  for (const char* const name : {"sgr0", "op", "rmkx", "cnorm", "rmcup"}) {
    if (has_capability(name)) tputs(tigetstr(name), 1, collect);
  }
  del_curterm(cur_term);  // a Screen has one of its own
  return std::exchange(collected(), {});
}

Screen::Screen(bool coloured) : curses_(std::make_unique<Curses>()) {
  use_utf8();
  set_escdelay(escape_delay_ms);
  use_env(false);
  use_tioctl(true);
  curses_->terminal = newterm(nullptr, stdout, stdin);
  if (curses_->terminal == nullptr) refuse_unknown(terminal_name());
  raw();
  noecho();
  nonl();
  curs_set(0);
  typeahead(-1);  // a draw is not put off because keys wait
  curses_->input = newpad(1, 1);
  keypad(curses_->input, true);
  nodelay(curses_->input, true);
  curses_->coloured = coloured && has_colors();
  if (!curses_->coloured) return;
  start_color();
  use_default_colors();
  init_pair(cyan_pair, COLOR_CYAN, -1);
  init_pair(green_pair, COLOR_GREEN, -1);
  init_pair(yellow_pair, COLOR_YELLOW, -1);
  init_pair(red_pair, COLOR_RED, -1);
}

Screen::~Screen() {
  if (!isendwin()) endwin();
  delwin(curses_->input);
  delscreen(curses_->terminal);
}

ScreenSize Screen::size() const {
  return {.columns = static_cast<std::size_t>(getmaxx(stdscr)), .rows = static_cast<std::size_t>(getmaxy(stdscr))};
}

void Screen::draw(const Frame& frame) {
  werase(stdscr);
  for (std::size_t row = 0; row < frame.size(); ++row) curses_->write_line(static_cast<int>(row), frame[row]);
  wnoutrefresh(stdscr);
  doupdate();
}

std::optional<Key> Screen::read_key() {
  wint_t code = 0;
  int what = wget_wch(curses_->input, &code);
  while (what == KEY_CODE_YES && code == KEY_RESIZE) what = wget_wch(curses_->input, &code);  // no key: see fit()
  if (what == ERR) return std::nullopt;
  return key_of(code, what == KEY_CODE_YES);
}

void Screen::fit() {
  struct winsize size {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return;
  resizeterm(size.ws_row, size.ws_col);
}

void Screen::forget_content() { clearok(curscr, true); }

void Screen::leave() { endwin(); }

void Screen::come_back() {
  fit();
  forget_content();
}

}  // namespace duet::app::top
