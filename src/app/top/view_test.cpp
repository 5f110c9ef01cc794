#include "app/top/view.h"

#include <string>

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app::top {
namespace {

using Kind = Key::Kind;
using Wanted = View::Wish::Kind;

Key key(char character) { return {.kind = Kind::character, .character = character}; }

struct TopView : testing::Test {
  TopView() {
    add(1, "running");
    add(2, "queued");
    add(3, "completed");
    view.settle(board);
  }

  void add(int number, const std::string& state) {
    board.take_record({{"id", "task-" + std::to_string(number)}, {"state", state}, {"agent", "a"}, {"prompt", "p"}});
  }

  Board board;
  View view;
};

TEST_F(TopView, TheCursorGoesFromEndToEnd) {
  EXPECT_EQ(view.chosen(), 1U);
  view.press({.kind = Kind::up}, board);
  EXPECT_EQ(view.chosen(), 1U);
  view.press({.kind = Kind::down}, board);
  EXPECT_EQ(view.chosen(), 2U);
  view.press({.kind = Kind::end}, board);
  EXPECT_EQ(view.chosen(), 3U);
  view.press({.kind = Kind::home}, board);
  EXPECT_EQ(view.chosen(), 1U);
}

TEST_F(TopView, TheCursorStaysWithItsTask) {
  view.press({.kind = Kind::down}, board);
  add(2, "running");
  add(4, "queued");
  view.settle(board);
  EXPECT_EQ(view.chosen(), 2U);
  board.forget(2);
  view.settle(board);
  EXPECT_EQ(view.chosen(), 4U) << "the one in its place";
}

TEST_F(TopView, ACancelIsAskedForAndMeansTheTaskThatWasNamed) {
  EXPECT_EQ(view.press(key('c'), board).kind, Wanted::nothing);
  EXPECT_EQ(view.question(), 1U);
  board.forget(1);
  view.settle(board);
  const View::Wish wish = view.press(key('y'), board);
  EXPECT_EQ(wish.kind, Wanted::cancel);
  EXPECT_EQ(wish.number, 1U);
  EXPECT_FALSE(view.question());
}

TEST_F(TopView, AnyOtherAnswerIsNo) {
  for (const Key& other : {key('n'), key('c'), key('q'), Key{.kind = Kind::enter}, Key{.kind = Kind::back}}) {
    view.press(key('c'), board);
    EXPECT_EQ(view.press(other, board).kind, Wanted::nothing);
    EXPECT_FALSE(view.question());
    EXPECT_EQ(view.message(), "task-1 goes on");
  }
}

TEST_F(TopView, WhatHasEndedIsNotCancelled) {
  view.press({.kind = Kind::end}, board);
  view.press(key('c'), board);
  EXPECT_FALSE(view.question());
  EXPECT_EQ(view.message(), "task-3 has ended");
  view.press({.kind = Kind::up}, board);
  EXPECT_EQ(view.message(), "") << "until the next key";
}

TEST_F(TopView, EnterFollowsAndQGoesBackAndThenQuits) {
  const View::Wish wish = view.press({.kind = Kind::enter}, board);
  EXPECT_EQ(wish.kind, Wanted::follow);
  EXPECT_EQ(wish.number, 1U);
  EXPECT_EQ(view.page(), View::Page::task);
  EXPECT_EQ(view.press(key('q'), board).kind, Wanted::leave);
  EXPECT_EQ(view.page(), View::Page::list);
  EXPECT_FALSE(view.followed());
  EXPECT_EQ(view.press(key('?'), board).kind, Wanted::nothing);
  EXPECT_EQ(view.page(), View::Page::help);
  EXPECT_EQ(view.press(key('x'), board).kind, Wanted::nothing);
  EXPECT_EQ(view.page(), View::Page::list);
  EXPECT_EQ(view.press(key('q'), board).kind, Wanted::quit);
}

TEST_F(TopView, TheKeysAreShownWhileATaskIsFollowedToo) {
  view.press({.kind = Kind::enter}, board);
  view.press(key('?'), board);
  EXPECT_EQ(view.page(), View::Page::help);
  EXPECT_EQ(view.press(key('q'), board).kind, Wanted::nothing);
  EXPECT_EQ(view.page(), View::Page::task);
  EXPECT_EQ(view.followed()->number, 1U);
}

TEST_F(TopView, ControlKeysWorkEverywhere) {
  view.press({.kind = Kind::enter}, board);
  view.press(key('c'), board);
  EXPECT_EQ(view.press(key('\x1A'), board).kind, Wanted::suspend);
  EXPECT_EQ(view.press(key('\x0C'), board).kind, Wanted::redraw);
  EXPECT_EQ(view.question(), 1U);
  EXPECT_EQ(view.press(key('\x03'), board).kind, Wanted::quit);
}

TEST_F(TopView, NothingHappensOnAnEmptyBoard) {
  const Board none;
  View empty;
  empty.settle(none);
  for (const Key& pressed : {key('c'), key('G'), Key{.kind = Kind::enter}, Key{.kind = Kind::page_down}}) {
    EXPECT_EQ(empty.press(pressed, none).kind, Wanted::nothing);
  }
  EXPECT_EQ(empty.press(key('p'), none).kind, Wanted::pause);
}

TEST_F(TopView, ScrollingStopsAtBothEnds) {
  view.press({.kind = Kind::enter}, board);
  view.press({.kind = Kind::up}, board);
  EXPECT_FALSE(view.bottom()) << "there is nothing yet";
  view.followed()->output.append("1\n2\n3\n4\n");
  view.press({.kind = Kind::up}, board);
  EXPECT_EQ(view.bottom(), 3U);
  view.press({.kind = Kind::home}, board);
  EXPECT_EQ(view.bottom(), 1U);
  view.press({.kind = Kind::page_down}, board);
  EXPECT_FALSE(view.bottom());
}

}  // namespace
}  // namespace duet::app::top
