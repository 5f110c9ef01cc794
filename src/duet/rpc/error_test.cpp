#include "duet/rpc/error.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/rpc/json_scan.h"

namespace duet::rpc {
namespace {

TEST(Error, TheContractsErrorsHaveTheirCodesAndCanonicalTexts) {
  EXPECT_EQ(parse_error("x").code(), -32700);
  EXPECT_EQ(parse_error("x").message(), "Parse error");
  EXPECT_EQ(invalid_request("x").code(), -32600);
  EXPECT_EQ(invalid_request("x").message(), "Invalid Request");
  EXPECT_EQ(batch_not_supported().code(), -32600);
  EXPECT_EQ(batch_not_supported().message(), "Batch requests not supported");
  EXPECT_EQ(method_not_found().code(), -32601);
  EXPECT_EQ(method_not_found().message(), "Method not found");
  EXPECT_EQ(invalid_params("p", "e", "r").code(), -32602);
  EXPECT_EQ(invalid_params("p", "e", "r").message(), "Invalid params");
  EXPECT_EQ(internal_error().code(), -32603);
  EXPECT_EQ(internal_error().message(), "Internal error");
  EXPECT_EQ(request_cancelled().code(), -32800);
}

TEST(Error, DataSaysTheReasonAndNothingWhereThereIsNone) {
  EXPECT_EQ(parse_error("invalid-json").data(), R"({"reason":"invalid-json"})");
  EXPECT_EQ(invalid_request("oversize").data(), R"({"reason":"oversize"})");
  EXPECT_EQ(invalid_request("malformed-envelope", "a \"b\"").data(),
            R"({"reason":"malformed-envelope","detail":"a \"b\""})");
  EXPECT_EQ(batch_not_supported().data(), R"({"reason":"batch-not-supported"})");
  EXPECT_EQ(method_not_found().data(), "");
  EXPECT_EQ(internal_error().data(), "");
}

TEST(Error, InvalidParamsNameTheParameterAndWhatIsAccepted) {
  EXPECT_EQ(invalid_params("p", "string", "missing").data(),
            R"({"param":"p","expected":"string","received":"missing"})");
  EXPECT_EQ(invalid_params("p", "string", "x", std::vector{"a", "b"}).data(),
            R"({"param":"p","expected":"string","received":"x","accepted":["a","b"]})");
}

TEST(Error, DataIsValidJsonWhateverAClientSent) {
  EXPECT_TRUE(is_valid_json(invalid_params("p\xFF", "\n", std::string_view("\0\"\\", 3)).data()));
}

TEST(Error, DataIsMadeOfValues) {
  EXPECT_EQ(Error(-32000, "missing", "/etc/passwd").data(), R"("/etc/passwd")");
  EXPECT_EQ(Error(-32000, "missing", std::string("{}")).data(), R"("{}")");
  EXPECT_EQ(Error(-32000, "missing", {{"why", "because"}}).data(), R"({"why":"because"})");
  EXPECT_EQ(Error(-32000, "missing", 5).data(), "5");
  EXPECT_EQ(Error(-32000, "missing", {}).data(), "");
}

TEST(Error, IsAnExceptionThatSaysItsMessage) {
  try {
    throw Error(1, "out of beer");
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "out of beer");
  }
}

}  // namespace
}  // namespace duet::rpc
