#pragma once

#include "app/cli/command_table.h"

namespace duet::app::entries {

/// The entries of `cert`, for the command table alone.

inline constexpr std::string_view cert_roles[] = {"observe", "operate", "own"};

inline constexpr OptionEntry cert_json_option{.name = "json", .summary = "Print it as JSON"};
inline constexpr OptionEntry new_ca_options[] = {
    {.name = "force",
     .summary = "Replace the CA and the certificate that are there: every client needs a new identity"},
    cert_json_option,
};
inline constexpr OptionEntry new_server_options[] = {
    {.name = "force", .summary = "Replace the certificate and the key that are there"},
    cert_json_option,
};
inline constexpr OptionEntry new_client_options[] = {
    {.name = "role",
     .value = "R",
     .summary = "observe sees everything, prompts and output included; operate also steers tasks and rules; own may do "
                "everything but make tokens",
     .choices = cert_roles},
    {.name = "days",
     .value = "N",
     .summary = "How long it is good; 365 if not given, and no longer than the CA",
     .kind = ValueKind::number,
     .least = 1,
     .most = 3650},
    {.name = "p12",
     .value = "FILE",
     .summary = "Write it for a browser, under a password (PKCS#12)",
     .kind = ValueKind::file},
    {.name = "force",
     .summary = "Make another one though NAME has one, which stays valid until it is revoked; overwrite FILE"},
    cert_json_option,
};
inline constexpr OptionEntry only_json_option[] = {cert_json_option};

inline constexpr ArgumentEntry server_names_argument[] = {{.name = "NAME", .count = ArgumentEntry::Count::any}};
inline constexpr ArgumentEntry client_name_argument[] = {{.name = "NAME"}};
inline constexpr ArgumentEntry certificate_file_argument[] = {{.name = "FILE", .kind = ValueKind::file}};
inline constexpr ArgumentEntry certificate_argument[] = {{.name = "NAME", .kind = ValueKind::certificate}};

inline constexpr std::string_view certificates_there =
    "certificates are made on the machine that keeps them: log in there, with ssh for example";

inline constexpr CommandEntry cert_commands[] = {
    {.path = "cert",
     .summary = "Make certificates for the TLS door",
     .details =
         "Makes the certificates by which this machine and those that reach its daemons over TLS know each other. "
         "They are in the folder tls beside config.toml, readable by you alone. No daemon is needed.",
     .group = true},
    {.path = "cert init",
     .summary = "Make a CA and this machine's certificate",
     .details =
         "Makes a CA, good for ten years, and this machine's certificate, good for 397 days, for its host name, "
         "localhost and NAME...: host names, IP addresses, or *.example.net. One that was interrupted is finished.\n"
         "Whoever has ca.key can make identities of any role: back it up where nobody else reads it.",
     .arguments = server_names_argument,
     .options = new_ca_options,
     .only_here = certificates_there},
    {.path = "cert server",
     .summary = "Make this machine's certificate anew",
     .details =
         "Makes this machine's certificate and its key anew: for NAME... and nothing else, or, if none is given, for "
         "the names it has. Clients go on as they are; a daemon takes it over with daemon reload.",
     .arguments = server_names_argument,
     .options = new_server_options,
     .only_here = certificates_there},
    {.path = "cert client",
     .summary = "Make an identity for a client",
     .details =
         "Makes an identity and prints it, this once: one PEM text with its key, its certificate and the CA. NAME, of "
         "letters, digits, '.', '_' and '-', is what logs, tasks and cert revoke call it. If stdout is a file, "
         "others lose the right to read it. Whoever has one with the role own can run any program as you.\n"
         "With --p12 a password is asked for on the terminal, twice; without a terminal it is the first line of "
         "stdin. The PEM text is printed, too, but not to a terminal.",
     .arguments = client_name_argument,
     .options = new_client_options,
     .only_here = certificates_there},
    {.path = "cert list",
     .summary = "Show the certificates",
     .details =
         "Shows the CA, this machine's certificate, and the clients' that were made here, with when they expire and "
         "whether they are valid, expired, revoked or not yet valid.",
     .options = only_json_option,
     .only_here = certificates_there},
    {.path = "cert show",
     .summary = "Show what a certificate says",
     .details =
         "Shows what the certificates in a file say (PEM, or one in DER), whoever made them: names, role, dates, "
         "fingerprint, issuer, kind of key, and whether they are valid now. - reads stdin.",
     .arguments = certificate_file_argument,
     .options = only_json_option,
     .only_here = certificates_there},
    {.path = "cert revoke",
     .summary = "Let a client in no more",
     .details =
         "Adds the fingerprints of all certificates of a client to the file revoked. Daemons that run notice it "
         "within 5 seconds and end its connections. Instead of NAME a single SHA-256 fingerprint may be given, also "
         "that of a certificate that others made.",
     .arguments = certificate_argument,
     .options = only_json_option,
     .only_here = certificates_there},
};

}  // namespace duet::app::entries
