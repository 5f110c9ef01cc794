#include "app/cli/manual_page.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "app/cli/command_table.h"
#include "app/cli/help.h"
#include "duet/version.h"

namespace duet::app {
namespace {

// Text as roff prints it: no escapes, no request at the beginning of a line, hyphens that can be copied.
std::string plain(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }

std::string option_term(const OptionEntry& option) {
  std::string out;
  if (option.letter != '\0') out += bold(std::string("-") + option.letter) + ", ";
  out += bold("--" + std::string(option.name));
  if (!option.usual.empty()) {
    out += "[=\\fI" + plain(option.value) + "\\fR]";
  } else if (!option.value.empty()) {
    out += " \\fI" + plain(option.value) + "\\fR";
  }
  return out;
}

std::string entry(std::string_view term, std::string_view text) {
  return ".TP\n" + std::string(term) + "\n" + plain(text) + ".\n";
}

std::string entry_lines(std::span<const OptionEntry> options) {
  std::string out;
  for (const OptionEntry& option : options) out += entry(option_term(option), option.summary);
  return out;
}

std::string entry_lines(std::span<const TermEntry> terms) {
  std::string out;
  for (const TermEntry& term : terms) out += entry(bold(term.name), term.summary);
  return out;
}

std::string command_section(const CommandEntry& command) {
  std::string text;
  for (const std::string_view paragraph : paragraphs(command.details)) {
    text += (text.empty() ? "" : ".PP\n") + plain(paragraph) + "\n";
  }
  return ".SS " + plain(usage_of(&command)) + "\n" + text + entry_lines(command.options);
}

// What it does, and the command.
constexpr std::pair<std::string_view, std::string_view> examples[] = {
    {"Run a command as a task, with its output and its exit code, and start the daemon if need be:",
     "duet-rpc task submit --start --agent shell --follow -- make test"},
    {"Show what happens in the daemon:", "duet-rpc events"},
    {"Fail if a file has errors:", "duet-rpc lsp diagnostics --fail-on error src/main.cpp"},
    {"Ask the daemon from a program that speaks JSON-RPC on stdin and stdout:",
     R"(echo '{"jsonrpc":"2.0","id":1,"method":"daemon.status"}' | duet-rpc connect --framing lines)"},
    {"Ask the server for editors what there is to ask:",
     R"(printf 'Content-Length: 47\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"listMethods"}' | duet-rpc rpc)"},
};

std::string example_section() {
  std::string out = ".SH EXAMPLES\n";
  for (const auto& [what, command] : examples) {
    const std::string_view paragraph = out.ends_with("EXAMPLES\n") ? "" : ".PP\n";
    out.append(paragraph) += plain(what) + "\n.PP\n.nf\n.RS\n" + plain(command) + "\n.RE\n.fi\n";
  }
  return out;
}

std::string see_also() {
  return ".SH SEE ALSO\n" + bold("duet-rpc-settings") + "(5), " + bold("duet-rpc-tasks") + "(7), and the pages in " +
         bold("share/doc/duet-rpc") + ".\n";
}

}  // namespace

std::string manual_page() {
  std::string out = ".TH DUET\\-RPC 1 \"\" \"duet\\-rpc " + std::string(kVersion) + "\" \"User Commands\"\n";
  out += ".SH NAME\nduet\\-rpc \\- " + plain(program_summary.substr(0, program_summary.size() - 1)) + "\n";
  out += ".SH SYNOPSIS\n" + bold(program_name) + " [\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]\n";
  out += ".SH COMMANDS\n";
  for (const CommandEntry& command : commands()) {
    if (command.listed) out += command_section(command);
  }
  out += ".SH OPTIONS\nThese are accepted before and after the command.\n" + entry_lines(global_options());
  out += ".SS Of every command that asks the daemon\n" + entry_lines(client_options());
  out += ".SH ENVIRONMENT\n" + entry_lines(environment());
  out += ".SH EXIT STATUS\n" + entry_lines(exit_codes());
  out += ".SH FILES\n" + entry_lines(known_files());
  return out + example_section() + see_also();
}

}  // namespace duet::app
