#include "app/doors/page.h"

#include <algorithm>
#include <array>

#include "app/words/sha256.h"

namespace duet::app {
namespace {

constexpr std::string_view front_page = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>duet-rpc</title>
<h1>duet-rpc</h1>
<p>This is the HTTP door of a daemon. It serves <code>POST /rpc</code>, <code>GET /events</code> and the WebSocket
<code>/ws</code> to whoever has a token: <code>duet-rpc token new NAME</code> makes one.</p>
</html>
)";

std::string etag_of(std::string_view text) {
  constexpr std::size_t enough = 32;
  return '"' + sha256(text).substr(0, enough) + '"';
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  static const std::array<PageFile, 1> files{
      {{.path = "/", .type = "text/html; charset=utf-8", .text = front_page, .etag = etag_of(front_page)}}};
  const auto found = std::ranges::find(files, path, &PageFile::path);
  return found == files.end() ? nullptr : &*found;
}

}  // namespace duet::app
