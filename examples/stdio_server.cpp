// A small language server on stdin and stdout, as an editor starts one: stdio_server [--lines]
// With --lines, messages are lines of JSON instead of LSP frames.

#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>

#include <duet/duet.h>

using namespace duet;

struct Document {
  std::string uri;
};
BOOST_DESCRIBE_STRUCT(Document, (), (uri))

struct Position {
  unsigned line;
  unsigned character;
};
BOOST_DESCRIBE_STRUCT(Position, (), (line, character))

int main(int argc, char** argv) {
  const bool lines = argc == 2 && argv[1] == std::string_view("--lines");
  base::Fd output = transport::take_stdout();  // from now on, stray prints go to stderr
  Log log(base::stderr_sink(false));
  Loop loop;
  bool was_shut_down = false;

  Methods methods;
  methods.add("initialize", [] { return Json{{"capabilities", {{"hoverProvider", true}}}}; });
  methods.add("textDocument/hover", "Tells where the cursor is", {"textDocument", "position"},
              [](const Document& document, const Position& position) {
                return Json{{"contents", document.uri + ", line " + std::to_string(position.line + 1)}};
              });
  methods.add("shutdown", [&] { was_shut_down = true; });
  methods.add("exit", [&] { loop.stop(); });

  ConnectionEvents events;
  events.on_closed = [&](auto) { loop.stop(); };
  auto channel = std::make_unique<transport::StdioChannel>(loop, base::duplicate(STDIN_FILENO), std::move(output));
  Connection editor(loop, std::move(channel), lines ? Protocol::json_lines() : Protocol::lsp_server(), methods, log,
                    events);
  editor.open();
  loop.run();
  return was_shut_down ? 0 : 1;
}
