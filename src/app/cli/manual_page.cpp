#include "app/cli/manual_page.h"

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
  if (!option.value.empty()) out += " \\fI" + plain(option.value) + "\\fR";
  return out;
}

std::string entry(std::string_view term, std::string_view text) {
  return ".TP\n" + std::string(term) + "\n" + plain(text) + ".\n";
}

std::string entries(std::span<const OptionEntry> options) {
  std::string out;
  for (const OptionEntry& option : options) out += entry(option_term(option), option.summary);
  return out;
}

std::string entries(std::span<const TermEntry> terms) {
  std::string out;
  for (const TermEntry& term : terms) out += entry(bold(term.name), term.summary);
  return out;
}

std::string command_section(const CommandEntry& command) {
  std::string text;
  for (const std::string_view paragraph : paragraphs(command.details)) {
    text += (text.empty() ? "" : ".PP\n") + plain(paragraph) + "\n";
  }
  return ".SS " + plain(usage_of(&command)) + "\n" + text + entries(command.options);
}

std::string example() {
  const std::string body = R"({"jsonrpc":"2.0","id":1,"method":"listMethods"})";
  return "printf 'Content-Length: " + std::to_string(body.size()) + R"(\r\n\r\n)" + body + "' | duet-rpc rpc";
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
  out += ".SH OPTIONS\nThese are accepted before and after the command.\n" + entries(global_options());
  out += ".SS Of every command that asks the daemon\n" + entries(client_options());
  out += ".SH ENVIRONMENT\n" + entries(environment());
  out += ".SH EXIT STATUS\n" + entries(exit_codes());
  return out + ".SH EXAMPLES\nAsk what there is to ask:\n.PP\n.nf\n.RS\n" + plain(example()) + "\n.RE\n.fi\n";
}

}  // namespace duet::app
