#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>

#include "bridge/choice.h"
#include "bridge/definition.h"
#include "bridge/language_server.h"
#include "bridge/project_search.h"
#include "bridge/session.h"
#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"

namespace duet::bridge {

/// The questions that are asked by file and answered in people's places.
enum class Question : std::uint8_t { hover, definition, references, completion, symbols };

/// What is asked about. Without a column it is the first character of the line that is no blank.
struct FilePlace {
  std::string path = {};  ///< absolute; empty: only the symbol is known
  std::optional<std::size_t> line = {};
  std::optional<std::size_t> column = {};
  /// Instead of a column the first whole word of this name in the line or near it; without a line what the file
  /// declares by this name; without a path what the project does, as far as the servers that run know.
  std::optional<std::string> symbol = {};
  std::optional<std::uint64_t> client = {};  ///< who asks
  std::string folders = {};                  ///< of the asker's PATH: see LanguageServer::offer_folders()
  std::size_t most = 1000;                   ///< places or symbols in the answer
};

/// A request that goes to a server as it is.
struct RawRequest {
  std::optional<std::string> server = {};  ///< none: by the document in the params, else the only one that runs
  std::string method = {};
  std::string params = {};  ///< JSON text; may be empty
  base::Duration patience = {};
  std::string folders = {};  ///< as in FilePlace
};

/// Something asked of servers and not answered yet.
class Asking;
class Inquiry;

/// All language servers of a project: chooses one by file name, starts it where it belongs, and asks it.
///
/// Questions are answered exactly once, with JSON text or an error; one that is cancelled is not. The answer comes from
/// the loop, or inside the very call that asks if it is known at once, such as why a server has just failed to start.
/// What is wrong with a question itself is thrown as rpc::Error. Clients are told apart by numbers that the caller
/// gives. For the loop's thread only.
class Bridge {
 public:
  using Done = std::function<void(CallResult)>;
  static constexpr std::size_t most_servers = 32;

  /// `project`: the root of files that no marker is found for. `settings`: see with_well_known().
  Bridge(transport::Loop& loop, base::Log& log, ServerSettings servers, std::string project,
         std::vector<Definition> settings);
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;
  ~Bridge();

  const std::string& project() const { return project_; }

  /// New settings: servers that were started by others are stopped, and come back by the new ones when needed, with
  /// what clients have said about documents.
  void set_definitions(std::vector<Definition> settings);

  using Asked = std::shared_ptr<Asking>;
  Asked start(const std::string& server, const std::optional<std::string>& root, Done done,
              const std::string& folders = {});
  Asked ask(Question question, const FilePlace& where, Done done);
  /// The symbols of a file, or of the project if there is no path, that `where.symbol` finds.
  Asked find(const FilePlace& where, Done done);
  Asked ask_diagnostics(const FilePlace& where, base::Duration wait, Done done);
  Asked request(RawRequest request, Done done);
  Asked notify(std::uint64_t client, RawRequest notification, Done done);
  /// Nobody wants the answer any more.
  void cancel(const Asked& asked);

  /// `then` gets how many were running, when no process of them is left.
  void stop(const std::string& server, const std::function<void(std::size_t)>& then);
  /// For the end of the program: nothing is asked any more. All stop together, within 10 s.
  void stop_all(std::function<void()> then);

  /// What a client said about documents goes with it.
  void client_gone(std::uint64_t client);

  /// LanguageServer::describe() of each, those that the settings do not name any more last.
  boost::json::array list() const;
  std::size_t running() const;

 private:
  using Key = std::pair<std::string, std::string>;  // name and root
  using Server = std::shared_ptr<LanguageServer>;
  struct Root {
    std::string root = {};
    base::TimePoint until = {};
  };

  Server server_at(const Definition& definition, const std::string& root);
  std::string root_of(const Definition& definition, const std::string& path);
  Server server_for_file(const std::string& path);
  Server server_for(const RawRequest& request, const std::optional<std::string>& path);
  Server named_server(const std::string& name, const std::optional<std::string>& path);
  Server only_server();
  const Definition& definition_named(const std::string& name) const;
  void let_go(const Server& server);
  void hand_over(const std::string& name, Documents::Map&& documents);
  /// Has `then` called when the server is ready, unless the inquiry is cancelled or fails before.
  std::shared_ptr<Inquiry> begin(Server server, const std::string& folders, base::Duration patience, Done done,
                                 std::function<void(Inquiry&)> then);
  Asked ask_by_name(Question question, const FilePlace& where, Done done);
  using Found = tl::expected<ProjectSearch::Result, rpc::Error>;
  Asked search(const std::string& query, std::function<void(const Found&)> done);

  transport::Loop& loop_;
  base::Log& log_;
  ServerSettings settings_;
  std::string project_;
  std::vector<Definition> definitions_;
  FileChoice file_choice_;
  std::map<Key, Server> servers_;
  std::vector<Server> leaving_;  // which the settings do not name any more, and which still end
  std::map<Key, Root> roots_;    // by the name of the definition and the file's folder
  bool stopping_ = false;
  base::Lifetime lifetime_;
};

}  // namespace duet::bridge
