#include "app/view/edit_form.h"

#include <gtest/gtest.h>

#include "app/view/table.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

const base::UtcTime edit_form_now = *parse_time("2026-11-16T14:02:11.000Z");

std::string form() {
  return edit_form(rpc::parse_value(R"({"id":"task-7","priority":2,"group":"default","notBefore":null,
      "labels":{"k":"v"},"prompt":"one\n---\ntwo\n","metadata":{"after":["task-3","task-4"]}})")
                       .as_object());
}

std::string replaced(std::string text, std::string_view old, std::string_view with) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), with);
}

std::string changed_to(const std::string& text) {
  const auto params = edit_params(form(), text, edit_form_now);
  return params ? rpc::to_text(*params) : params.error();
}

TEST(EditForm, WhatIsNotChangedIsNotSent) {
  EXPECT_EQ(changed_to(form()), "{}");
  EXPECT_EQ(changed_to(replaced(form(), "priority = 2", "  priority =2")), "{}");
  EXPECT_EQ(changed_to(replaced(form(), "priority = 2\n", "")), "{}");
}

TEST(EditForm, EachFieldCanBeChanged) {
  EXPECT_EQ(changed_to(replaced(form(), "priority = 2", "priority = -5")), R"({"priority":-5})");
  EXPECT_EQ(changed_to(replaced(form(), "group = default", "group = slow")), R"({"group":"slow"})");
  EXPECT_EQ(changed_to(replaced(form(), "not-before = ", "not-before = +2h")),
            R"({"notBefore":"2026-11-16T16:02:11.000Z"})");
  EXPECT_EQ(changed_to(replaced(form(), "after = task-3 task-4", "after = 3, task-9")),
            R"({"after":["task-3","task-9"]})");
  EXPECT_EQ(changed_to(replaced(form(), "after = task-3 task-4", "after =")), R"({"after":[]})");
  EXPECT_EQ(changed_to(replaced(form(), "labels = k=v", "labels = a=b=c")), R"({"labels":{"a":"b=c"}})");
  EXPECT_EQ(changed_to(replaced(form(), "two\n", "three\n")), R"({"prompt":"one\n---\nthree\n"})");
}

TEST(EditForm, WhatIsWrongIsToldWithItsLine) {
  EXPECT_EQ(changed_to(replaced(form(), "priority = 2", "priority = high")),
            "line 2: priority is 'high': it is a whole number");
  EXPECT_EQ(changed_to(replaced(form(), "group = default", "grup = x")),
            "line 3: there is no field 'grup'; there are priority, group, not-before, after and labels");
  EXPECT_EQ(changed_to(replaced(form(), "labels = k=v", "labels = k")),
            R"(line 9: labels has 'k': it is NAME=VALUE, or "A NAME"="A VALUE")");
  EXPECT_EQ(changed_to("priority = 2\n"), "the line '---' is gone, below which the prompt begins");
  EXPECT_EQ(changed_to("---\n \n"), "the prompt is empty: say what the agent is to do");
}

// The labels of a task whose form has one word more in its labels.
std::string labels_after_an_edit(const boost::json::object& labels) {
  const std::string before = edit_form({{"id", "task-7"}, {"prompt", "p"}, {"labels", labels}});
  const auto params = edit_params(before, replaced(before, "labels = ", "labels = new=x "), edit_form_now);
  return params ? rpc::to_text(*params) : params.error();
}

TEST(EditForm, LabelsComeBackAsTheyWere) {
  EXPECT_EQ(labels_after_an_edit({{"a,b", "x, y"}, {"c=d", "e=f"}, {"say \"hi\"", "back\\slash\""}}),
            R"({"labels":{"new":"x","a,b":"x, y","c=d":"e=f","say \"hi\"":"back\\slash\""}})");
  EXPECT_EQ(labels_after_an_edit({{"two\nlines", " blanks\t\r\n---\n"}, {"none", ""}, {"ż", "日本"}}),
            R"({"labels":{"new":"x","two\nlines":" blanks\t\r\n---\n","none":"","ż":"日本"}})");
  for (const char* wrong : {R"(labels = "a"b=c)", R"(labels = a="b)", R"(labels = a="b"c)", R"(labels = ""=x)",
                            R"(labels = a="\q")", R"(labels = =x)"}) {
    EXPECT_TRUE(changed_to(replaced(form(), "labels = k=v", wrong)).starts_with("line 9: labels has '")) << wrong;
  }
}

}  // namespace
}  // namespace duet::app
