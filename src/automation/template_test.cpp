#include "automation/template.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::automation {
namespace {

const Event event{.source = "task",
                  .type = "task.failed",
                  .payload = {{"path", "a {{type}} b"}, {"exitCode", 7}, {"signal", nullptr}}};

std::string filled(std::string_view text) {
  auto result = fill_template(text, event);
  if (const auto* missing = std::get_if<MissingField>(&result)) return "missing: " + missing->name;
  return std::get<std::string>(result);
}

TEST(Template, PutsTheValuesIn) {
  EXPECT_EQ(filled("{{type}} of {{ source }}: {{payload.exitCode}}."), "task.failed of task: 7.");
  EXPECT_EQ(filled("plain"), "plain");
}

TEST(Template, WhatAValueContainsStaysAsItIs) { EXPECT_EQ(filled("<{{payload.path}}>"), "<a {{type}} b>"); }

TEST(Template, NullIsNothingAndWhatIsNotThereIsNamed) {
  EXPECT_EQ(filled("<{{payload.signal}}>"), "<>");
  EXPECT_EQ(filled("{{type}} {{payload.paht}}"), "missing: payload.paht");
  EXPECT_EQ(filled("{{path}}"), "missing: path");
}

TEST(Template, OtherBracesAreText) {
  for (const char* text : {"{{", "{{}}", "{{ #each x }}", "{payload.path}", "{{type", "}}{{"}) {
    EXPECT_EQ(filled(text), text);
  }
  EXPECT_EQ(filled("{{{type}}}"), "{task.failed}");
  EXPECT_EQ(filled("{{ {{type}}"), "{{ task.failed");
}

}  // namespace
}  // namespace duet::automation
