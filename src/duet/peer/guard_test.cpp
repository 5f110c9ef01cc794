#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

/// A guard that lets nobody but the role `own` call what needs that.
struct Guarded : TestConnection {
  explicit Guarded(std::shared_ptr<const Admission> admission) {
    methods.add("look", [] { return true; }).needs("observe");
    methods.add("change", "", {"number"}, [this](std::int64_t number) { changes += number; });
    methods.set_guard([this](const Method& method, const Peer& who) -> std::optional<rpc::Error> {
      ++questions;
      if (method.needs != "own" || who.admission->role == "own") return std::nullopt;
      return rpc::not_permitted(method.name, method.needs, who.admission->role);
    });
    peer.admission = std::move(admission);
    open();
  }

  int questions = 0;
  std::int64_t changes = 0;
};

std::shared_ptr<const Admission> admitted_as(std::string role) {
  return std::make_shared<const Admission>(Admission{.door = "http", .name = "tab", .role = std::move(role)});
}

std::string refused(std::string_view id, std::string_view method) {
  return error(id, -32005, "Not permitted",
               R"({"method":")" + std::string(method) + R"(","needs":"own","role":"observe"})");
}

TEST(Guard, IsNotAskedAboutWhoNeededNoAdmission) {
  Guarded c(nullptr);
  EXPECT_EQ(c.say({request("1", "change", "[2]"), notification("change", "[3]")}), Strings{result("1", "null")});
  EXPECT_EQ(c.changes, 5);
  EXPECT_EQ(c.questions, 0);
}

TEST(Guard, LetsARoleCallWhatItMay) {
  Guarded c(admitted_as("own"));
  EXPECT_EQ(c.say({request("1", "look"), request("2", "change", "[2]")}),
            (Strings{result("1", "true"), result("2", "null")}));
  EXPECT_EQ(c.changes, 2);
  EXPECT_EQ(c.questions, 2);
}

TEST(Guard, RefusesBeforeParamsAreRead) {
  Guarded c(admitted_as("observe"));
  EXPECT_EQ(c.say({request("1", "look"), request("2", "change", R"({"number":"no number"})"), request("3", "look")}),
            (Strings{result("1", "true"), refused("2", "change"), result("3", "true")}));
}

TEST(Guard, DoesNotTellWhatIsNotThere) {
  Guarded c(admitted_as("observe"));
  EXPECT_EQ(c.say({request("1", "missing")}), Strings{error("1", -32601, "Method not found")});
  EXPECT_EQ(c.questions, 0);
}

TEST(Guard, RefusesAMethodThatAnswersLaterAndHoldsNobodyUp) {
  Guarded c(admitted_as("observe"));
  EXPECT_EQ(c.say({request("1", "late"), request("2", "look")}), (Strings{refused("1", "late"), result("2", "true")}));
  EXPECT_EQ(c.begun, Strings{});
  EXPECT_FALSE(c.connection->conversation().owes_answer());
}

TEST(Guard, RefusesMembersOfABatchOneByOne) {
  Guarded c(admitted_as("observe"));
  EXPECT_EQ(c.say({"[" + request("1", "look") + "," + request("2", "change", "[2]") + "," +
                   notification("change", "[3]") + "," + request("4", "late") + "," + request("5", "look") + "]"}),
            Strings{"[" + result("1", "true") + "," + refused("2", "change") + "," + refused("4", "late") + "," +
                    result("5", "true") + "]"});
  EXPECT_EQ(c.changes, 0);
}

TEST(Guard, RefusesNotificationsAndTheLogSaysSo) {
  Guarded c(admitted_as("observe"));
  EXPECT_EQ(c.say({notification("change", "[3]")}), Strings{});
  EXPECT_EQ(c.changes, 0);
  EXPECT_EQ(c.tape.lines(), Strings{R"(error Not permitted method="change")"});
}

TEST(Guard, IsAskedWhenTheTurnOfAWaitingRequestComes) {
  Guarded c(admitted_as("own"));
  c.say({request("1", "late"), request("2", "change", "[2]")});
  EXPECT_EQ(c.questions, 1);
  c.answer_late("0");
  c.turn();
  EXPECT_EQ(c.heard(), (Strings{result("1", "0"), result("2", "null")}));
  EXPECT_EQ(c.questions, 2);
}

TEST(Guard, WithoutOneAnAdmissionIsOnlyToldToHandlers) {
  TestConnection c;
  c.peer.admission = admitted_as("observe");
  c.methods.add("who", [](const Request& asked) { return asked.conversation.peer().admission->name; });
  c.open();
  EXPECT_EQ(c.say({request("1", "who")}), Strings{result("1", R"("tab")")});
}

}  // namespace
}  // namespace duet::peer
