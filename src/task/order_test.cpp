#include "task/order.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"
#include "task/contact.h"

namespace duet::task {
namespace {

class OrderTest : public testing::Test {
 protected:
  OrderTest() {
    std::array<int, 2> ends{};
    base::check_call(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
    near_.reset(ends[0]);
    far_.reset(ends[1]);
    order_.assignment.run = {7, 2};
    order_.assignment.arguments = {"program", "", std::string("a\0b", 3)};
    order_.assignment.environment = {{"A", "1"}, {"B", ""}};
    order_.assignment.directory = "/somewhere";
    order_.assignment.time_limit = std::chrono::milliseconds(1234);
    order_.mark = "mark";
    order_.umask = 027;
    order_.farewell = std::chrono::seconds(3);
    order_.assignment.limits = {.memory = 5, .cpu = 1.5};
    order_.cgroup = "/cgroup/task";
  }

  ReceivedOrder pass_on() {
    EXPECT_TRUE(send_order(near_.get(), order_, record_));
    return std::move(receive_order(far_.get()).value());
  }

  static std::string text_of(const base::Fd& fd) {
    std::string text(std::size_t{1} << 22, '\0');
    std::size_t size = 0;
    for (ssize_t count = 1; count > 0; size += static_cast<std::size_t>(count)) {
      count = read(fd.get(), text.data() + size, text.size() - size);
      if (count <= 0) break;
    }
    text.resize(size);
    return text;
  }

  transport::TemporaryFolder folder_;
  base::Fd tasks_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  RunRecord record_ = RunRecord::create(tasks_.get(), {7, 2}, "");
  base::Fd near_;
  base::Fd far_;
  Order order_;
};

TEST_F(OrderTest, ArrivesAsItWasSent) {
  const ReceivedOrder received = pass_on();
  EXPECT_EQ(received.order.assignment.limits, order_.assignment.limits);
  EXPECT_EQ(received.order.cgroup, order_.cgroup);
  const Assignment& assignment = received.order.assignment;
  EXPECT_EQ(assignment.run, order_.assignment.run);
  EXPECT_EQ(assignment.arguments, order_.assignment.arguments);
  EXPECT_EQ(assignment.environment, order_.assignment.environment);
  EXPECT_EQ(assignment.directory, "/somewhere");
  EXPECT_EQ(assignment.time_limit, std::chrono::milliseconds(1234));
  EXPECT_EQ(received.order.mark, "mark");
  EXPECT_EQ(received.order.umask, 027U);
  EXPECT_EQ(received.order.grace, std::chrono::seconds(5));
  EXPECT_EQ(received.order.farewell, std::chrono::seconds(3));
  EXPECT_FALSE(received.input);
}

TEST_F(OrderTest, BringsTheRecordWithItsLock) {
  const ReceivedOrder received = pass_on();
  record_ = {};
  EXPECT_FALSE(RunRecord::open(tasks_.get(), {7, 2}).lock());
}

TEST_F(OrderTest, AnOrderThatNobodyReadsLetsGoOfTheLock) {
  EXPECT_TRUE(send_order(near_.get(), order_, record_));
  record_ = {};
  EXPECT_FALSE(RunRecord::open(tasks_.get(), {7, 2}).lock());
  far_.reset();
  EXPECT_TRUE(RunRecord::open(tasks_.get(), {7, 2}).lock());
}

TEST_F(OrderTest, InputComesInADescriptorThatCannotBeWritten) {
  order_.assignment.input = std::string(2'000'000, 'i');
  const ReceivedOrder received = pass_on();
  EXPECT_EQ(text_of(received.input), order_.assignment.input);
  EXPECT_LT(write(received.input.get(), "x", 1), 0);
}

TEST_F(OrderTest, MayHaveMegabytes) {
  order_.assignment.arguments.push_back(std::string(3'000'000, 'x'));
  order_.assignment.input = "input";
  const ReceivedOrder received = pass_on();
  EXPECT_EQ(received.order.assignment.arguments, order_.assignment.arguments);
  EXPECT_EQ(text_of(received.input), "input");
}

TEST_F(OrderTest, WhatIsNoOrderIsSkipped) {
  send_message(near_.get(), {.kind = Message::Kind::cancel});
  const std::array<int, 1> descriptors{tasks_.get()};
  send_packet(near_.get(), "order1??", descriptors);
  EXPECT_EQ(pass_on().order.mark, "mark");
  near_.reset();
  EXPECT_FALSE(receive_order(far_.get()));
}

TEST_F(OrderTest, CutShortItIsNotTakenForOne) {
  const std::string bytes = encode(order_);
  EXPECT_TRUE(decode_order(bytes));
  EXPECT_FALSE(decode_order(bytes + "x"));
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_order(bytes.substr(0, size))) << size;
}

TEST_F(OrderTest, BringsAClaim) {
  EXPECT_FALSE(pass_on().order.assignment.claim);
  order_.assignment.claim = Claim{.fence = std::uint64_t{1} << 40U, .worker = "build-3", .leased = true};
  EXPECT_EQ(pass_on().order.assignment.claim, order_.assignment.claim);
}

TEST_F(OrderTest, WithAClaimCutShortItIsNotTakenForOneWithout) {
  order_.assignment.claim = Claim{.fence = 9, .worker = "build-3", .leased = true};
  const std::string bytes = encode(order_);
  EXPECT_TRUE(decode_order(bytes));
  EXPECT_FALSE(decode_order(bytes + "x"));
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_order(bytes.substr(0, size))) << size;
}

// Byte for byte: what daemons and keepers before there were claims send each other.
TEST_F(OrderTest, WithoutAClaimItIsAsItWas) {
  Order order{.assignment = {.run = {7, 2}, .arguments = {"go"}}, .mark = "m", .umask = 022, .cgroup = "c"};
  const auto numbers = [](std::initializer_list<std::uint64_t> each) {
    std::string bytes;
    for (const std::uint64_t number : each) bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    return bytes;
  };
  const std::string old = numbers({2, 7, 2, 1, 2}) + "go" + numbers({0, 0, 0, 0, 1}) + "m" +
                          numbers({022, 5000, 0, 0, 0, 0, 0, 0, 1}) + "c";
  EXPECT_EQ(encode(order), old);
  ASSERT_TRUE(decode_order(old));
  EXPECT_FALSE(decode_order(old)->assignment.claim);
}

}  // namespace
}  // namespace duet::task
