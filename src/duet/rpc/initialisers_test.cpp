#include "duet/rpc/initialisers.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <gtest/gtest.h>

namespace duet::rpc {
namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct WithInitialisers {
  int whole = 0;
  double number = 0;
  bool flag = false;
  Colour colour = Colour::red;
  std::string text = "x";
  std::vector<int> list = {0};
  std::map<std::string, int> map = {{"a", 0}};
  std::optional<int> optional;
};
BOOST_DESCRIBE_STRUCT(WithInitialisers, (), (whole, number, flag, colour, text, list, map, optional))

struct WithoutInitialisers {
  int whole;
  double number;
  bool flag;
  Colour colour;
  std::string text;
  std::vector<int> list;
  std::map<std::string, int> map;
};
BOOST_DESCRIBE_STRUCT(WithoutInitialisers, (), (whole, number, flag, colour, text, list, map))

struct Submit {
  std::string prompt;
  std::optional<std::string> agent;
  int priority = 0;
};
BOOST_DESCRIBE_STRUCT(Submit, (), (prompt, agent, priority))

struct Plain {
  bool first;
  std::int64_t second = -1;
  bool third;
  std::int64_t fourth;
};
BOOST_DESCRIBE_STRUCT(Plain, (), (first, second, third, fourth))

struct Derived : Plain {
  bool fifth = true;
  Plain inner;
};
BOOST_DESCRIBE_STRUCT(Derived, (Plain), (fifth, inner))

struct Constructed {
  Constructed() : first(0) {}
  int first;
  int second;
  std::optional<int> third;
};
BOOST_DESCRIBE_STRUCT(Constructed, (), (first, second, third))

template <typename Struct>
std::string marks() {
  std::string out;
  for (const bool may_be_absent : absent_members<Struct>()) out += may_be_absent ? '?' : '!';
  return out;
}

TEST(Initialisers, AMemberThatHasOneMayBeAbsent) { EXPECT_EQ(marks<WithInitialisers>(), "????????"); }

TEST(Initialisers, AMemberThatHasNoneIsRequired) { EXPECT_EQ(marks<WithoutInitialisers>(), "!!!!!!!"); }

TEST(Initialisers, AreToldApartBesideEachOther) {
  EXPECT_EQ(marks<Submit>(), "!??");
  EXPECT_EQ(marks<Plain>(), "!?!!");
}

TEST(Initialisers, OfABaseCountAndAStructInsideIsRequired) { EXPECT_EQ(marks<Derived>(), "!?!!?!"); }

TEST(Initialisers, OfAStructWithAConstructorAreNotKnown) {
  EXPECT_EQ(marks<Constructed>(), "!!?");
  static_assert(!PlainStruct<Constructed>);
  static_assert(PlainStruct<Derived>);
}

}  // namespace
}  // namespace duet::rpc
