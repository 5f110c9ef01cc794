#include "app/view/lsp_view.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app {
namespace {

const TextStyle plain(false);

boost::json::object parse(const std::string& text) { return rpc::parse_value(text).as_object(); }

TEST(LspViewTest, KeepsATerminalSafe) {
  EXPECT_EQ(hover_view(parse(R"({"contents":"a\u001b[31mb","kind":"plaintext"})"), plain).find('\x1b'),
            std::string::npos);
  EXPECT_EQ(hover_view(parse(R"({"contents":"a\u001b[31mb\n```\n\u001b[0m\n```"})"), plain).find('\x1b'),
            std::string::npos);
}

TEST(LspViewTest, MarksWhatIsMeant) {
  EXPECT_EQ(
      places_view(
          parse(
              R"({"places":[{"file":"/x/a.c","line":2,"column":4,"endLine":2,"endColumn":7,"text":"你 \tabc"}],"more":3})"),
          plain),
      "/x/a.c:2:4\n    你  abc\n        ^~~\nand 3 more\n");
  EXPECT_EQ(
      places_view(parse(R"({"places":[{"file":"/x/a.c","line":2,"column":2,"endLine":3,"endColumn":1,"text":"abc"}]})"),
                  plain),
      "/x/a.c:2:2\n    abc\n     ^~\n");
  EXPECT_EQ(places_view(parse(R"({"places":[{"uri":"jdt:x","line":1,"column":1,"endLine":1,"endColumn":1}]})"), plain),
            "jdt:x:1:1\n");
  EXPECT_EQ(places_view(parse(R"({"places":[]})"), plain), "nothing found\n");
}

TEST(LspViewTest, ShowsDiagnosticsAsCompilersDo) {
  EXPECT_EQ(
      diagnostics_view(
          parse(
              R"({"file":"/x/a.c","diagnostics":[{"line":1,"column":5,"endLine":1,"endColumn":6,"severity":"warning","message":"odd\nthing","source":"clang","code":7,"text":"int x"}]})"),
          plain),
      "/x/a.c:1:5: warning: odd thing  [clang 7]\n    int x\n        ^\n");
  EXPECT_EQ(diagnostics_view(parse(R"({"file":"/x/a.c","diagnostics":[]})"), plain), "/x/a.c: nothing found\n");
}

TEST(LspViewTest, DiagnosticsThatDidNotComeAreNoAllClear) {
  const auto shown = [](const std::string& more) {
    return diagnostics_view(parse(R"({"file":"/x/a.c","fresh":false,)" + more + "}"), plain);
  };
  EXPECT_EQ(shown(R"("reason":"pending","diagnostics":[])"),
            "/x/a.c: not known yet: the server has not looked at it in time; --wait gives it more\n");
  EXPECT_EQ(shown(R"("reason":"changed","diagnostics":[])"), "/x/a.c: not known yet: it changed meanwhile\n");
  EXPECT_EQ(shown(R"("reason":"unversioned","diagnostics":[])"), "/x/a.c: nothing found\n");
  EXPECT_EQ(
      shown(R"("reason":"pending","diagnostics":[{"line":1,"column":1,"severity":"error","message":"m"}])"),
      "/x/a.c:1:1: error: m\n/x/a.c: not known yet: the server has not looked at it in time; --wait gives it more; "
      "what is shown is about an earlier text\n");
}

TEST(LspViewTest, ShowsSymbolsAsATree) {
  EXPECT_EQ(
      symbols_view(parse(R"x({"symbols":[{"name":"A","kind":"class","line":1,"column":7,)x"
                         R"x("children":[{"name":"b","kind":"method","detail":"int ()","line":2,"column":3}]}]})x"),
                   "/x/a.c", plain),
      "/x/a.c:1:7: class A\n/x/a.c:2:3:   method b  int ()\n");
}

TEST(LspViewTest, SaysAFailureInOneLine) {
  EXPECT_EQ(failure_line("x: ended with code 1", parse(R"({"cause":"crashed","stderr":"first\nlast words\n\n"})")),
            "crashed: x: ended with code 1; its stderr ends with: last words");
  EXPECT_EQ(failure_line("x: no", parse(R"({"cause":"protocol-noise","stdout":"hello\n"})")),
            "protocol-noise: x: no; it printed: hello");
  EXPECT_EQ(failure_line("x: no", parse("{}")), "x: no");
}

TEST(LspViewTest, SurvivesAnswersOfAnyShape) {
  for (const char* odd : {"{}", R"({"places":5,"items":{},"symbols":null,"diagnostics":"x","contents":[1]})",
                          R"({"places":[1],"items":["x"],"symbols":[null],"diagnostics":[[]]})"}) {
    const boost::json::object result = parse(odd);
    EXPECT_NO_THROW(hover_view(result, plain));
    EXPECT_NO_THROW(places_view(result, plain));
    EXPECT_NO_THROW(completion_view(result, plain));
    EXPECT_NO_THROW(symbols_view(result, "/x", plain));
    EXPECT_NO_THROW(diagnostics_view(result, plain));
  }
}

TEST(LspViewTest, SymbolsMayBeNested) {
  std::string text = R"({"name":"x","kind":"k","line":1,"column":1})";
  for (int i = 0; i < 20; ++i) text = R"({"name":"x","kind":"k","line":1,"column":1,"children":[)" + text + "]}";
  const std::string shown = symbols_view(parse(R"({"symbols":[)" + text + "]}"), "/f", plain);
  EXPECT_EQ(std::ranges::count(shown, '\n'), 21);
}

}  // namespace
}  // namespace duet::app
