#include "app/view/markdown.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

std::string shown(std::string_view markdown) { return plain_markdown(markdown, TextStyle(false)); }

TEST(Markdown, OfAnUsualHoverOnlyTheWordsAreLeft) {
  EXPECT_EQ(shown("### function `greet`  \n\n---\n→ `int`  \nParameters:  \n- `const char *name`\n- `int`\n\n"
                  "Counts *the* **letters**.\n\n\n```cpp\n// In `main`\n\nint **greet**();\n```\n"),
            "function greet\n\n→ int\nParameters:\n- const char *name\n- int\n\nCounts the letters.\n\n"
            "  // In `main`\n\n  int **greet**();\n");
}

TEST(Markdown, NamesKeepTheirUnderscoresAndStars) {
  EXPECT_EQ(shown("__init__(self, *args, **kwargs)"), "__init__(self, *args, **kwargs)\n");
  EXPECT_EQ(shown("`__init__` and __name__ and snake_case_name"), "__init__ and __name__ and snake_case_name\n");
  EXPECT_EQ(shown("2 ** 3 and _so_"), "2 ** 3 and _so_\n");
  EXPECT_EQ(shown("\\_\\_init\\_\\_ `a\\_b` \\\\_c"), "__init__ a\\_b \\_c\n");
}

TEST(Markdown, EscapesAndEntitiesAreResolved) {
  EXPECT_EQ(shown("a\\_b \\*c\\* &lt;d&gt; e&nbsp;f &#65;&#x20AC; &unknown;"), "a_b *c* <d> e f A€ &unknown;\n");
}

TEST(Markdown, CodeIsShownAsItIs) {
  EXPECT_EQ(shown("```\nnever closed"), "  never closed\n");
  EXPECT_EQ(shown("    indented\n      more"), "  indented\n    more\n");
  EXPECT_EQ(shown("`<b> &lt; __x__`"), "<b> &lt; __x__\n");
}

TEST(Markdown, ListsAreNested) {
  EXPECT_EQ(shown("1. one\n2. two\n   - deep\n   - er\n3. three\n\nafter"),
            "1. one\n2. two\n   - deep\n   - er\n3. three\n\nafter\n");
  EXPECT_EQ(shown("- a\n\n  b\n- c"), "- a\n\n  b\n\n- c\n");
  EXPECT_EQ(shown("-\n- x"), "-\n- x\n");
}

TEST(Markdown, LinksSayWhereTheyLead) {
  EXPECT_EQ(shown("See [the **manual**](https://example.org/a)."), "See the manual (https://example.org/a).\n");
  EXPECT_EQ(shown("<https://example.org>"), "https://example.org\n");
  EXPECT_EQ(shown("Go to [Foo](file:///x/y.rs#L1,2)"), "Go to Foo\n");
  EXPECT_EQ(shown("[x] a [b]("), "[x] a [b](\n");
}

TEST(Markdown, OfHtmlTheMarksGoButNoWordsOfTheAuthor) {
  EXPECT_EQ(shown("a<br>b <b>bold</b> vector<int> <!-- hidden -->c"), "a\nb bold vector<int> c\n");
  EXPECT_EQ(shown("<p>Hello <i>you</i></p>\n"), "Hello you\n");
}

TEST(Markdown, QuotesHaveAMarkAndTablesStayAsTheyAre) {
  EXPECT_EQ(shown("|a|bb|\n|---|---|\n|ccc|`d`|\n"), "|a|bb|\n|---|---|\n|ccc|d|\n");
  EXPECT_EQ(shown("> quoted\n> more\n\nrest"), "> quoted\n> more\n\nrest\n");
}

TEST(Markdown, HeadingsAreMarkedByTheirStyleOnly) {
  EXPECT_EQ(plain_markdown("# Title\n\ntext", TextStyle(true)), "\x1b[1mTitle\x1b[0m\n\ntext\n");
}

TEST(Markdown, MarksStandInTheOrderTheyAreNested) {
  EXPECT_EQ(shown("- > a\n  > b"), "- > a\n  > b\n");
  EXPECT_EQ(shown("> - a\n>   b"), "> - a\n>   b\n");
  EXPECT_EQ(shown("- - a\n  - b"), "- - a\n  - b\n");
}

TEST(Markdown, WhatIsNestedDeepIsNotLongerForThat) {
  std::string text = std::string(2000, '>') + "a\n";
  for (int i = 0; i < 1000; ++i) text += "a\n";
  EXPECT_LT(shown(text).size(), 40 * text.size());
  EXPECT_TRUE(shown(text + "\nafter").ends_with("\n\nafter\n"));
}

TEST(Markdown, ATerminalIsSafeFromAnyText) {
  for (const char* text : {"a\x1b[31mb", "```\n\x1b[0m\n```", "# \x1b[0m", "|\x1b[0m|\n|-|\n|\x1b|", "- \x1b[0m",
                           "<\x1b[0m>", "\x1b[31m", "&#27;[31m", "[a](http://\x1b[0m)"}) {
    EXPECT_EQ(shown(text).find('\x1b'), std::string::npos) << text;
  }
  EXPECT_EQ(shown(""), "");
  EXPECT_EQ(shown(std::string("a\0b", 3)), "a\uFFFDb\n");
  EXPECT_EQ(shown("\xFF"), "\uFFFD\n");
}

}  // namespace
}  // namespace duet::app
