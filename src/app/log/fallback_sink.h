#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "duet/base/log_line.h"
#include "duet/base/log_sink.h"

namespace duet::app {

/// The log file of DUET_RPC_LOG and what stands in for it, usually stderr, while it cannot be written: a full disk, a
/// FIFO whose reader has left.
///
/// The first time, a warning there says why. Every line is tried on the file first, so that the log goes on in it when
/// there is room again; what the file does not take goes to the other sink, from level `least` up. For the log's writer
/// thread, as any sink.
class FallbackSink final : public base::LogSink {
 public:
  FallbackSink(std::unique_ptr<base::LogSink> file, std::unique_ptr<base::LogSink> fallback, base::Level least)
      : file_(std::move(file)), fallback_(std::move(fallback)), least_(least) {}

  std::size_t write(std::string_view lines) override;
  bool joins_lines() const override { return file_->joins_lines(); }

 private:
  bool complain(int error);

  std::unique_ptr<base::LogSink> file_;
  std::unique_ptr<base::LogSink> fallback_;
  base::Level least_;
  bool complained_ = false;
};

/// The one text about a log file that is not written, whenever that is found out.
inline constexpr std::string_view file_complaint = "DUET_RPC_LOG cannot be written, logging to stderr";

}  // namespace duet::app
