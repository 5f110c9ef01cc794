#!/usr/bin/env python3
"""The command line: version, help, what bad usage gets, and where colours appear."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runner"))

import suite  # noqa: E402
from daemon import PATIENCE, clean_environment  # noqa: E402
from terminal import run_on_terminal  # noqa: E402

SEMVER = re.compile(r"\d+\.\d+\.\d+\n")
FOOTER = "See 'duet-rpc <command> --help' for more information."


def run(*arguments, env=None):
    return subprocess.run([suite.program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=clean_environment(env), timeout=PATIENCE)


class Version(suite.TestCase):
    def test_is_semver_and_a_newline_and_nothing_else(self):
        for arguments in (["--version"], ["-V"], ["version"]):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertRegex(result.stdout, rf"\A{SEMVER.pattern}\Z")
                self.assertEqual((result.stderr, result.returncode), ("", 0))

    def test_is_the_version_of_the_build(self):
        if suite.option("version"):
            self.assertEqual(run("--version").stdout.strip(), suite.option("version"))

    def test_is_what_the_methods_tell(self):
        version = run("--version").stdout.strip()
        with suite.rpc() as daemon:
            self.assertEqual(daemon.call("version")["result"], {"version": version})
            self.assertEqual(daemon.call("initialize")["result"]["serverInfo"]["version"], version)


class Help(suite.TestCase):
    def test_comes_on_demand_and_without_arguments(self):
        texts = set()
        for arguments in (["--help"], ["-h"], []):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual((result.stderr, result.returncode), ("", 0))
                texts.add(result.stdout)
        self.assertEqual(len(texts), 1, "three ways, one text")

    def test_ends_with_the_footer(self):
        self.assertEqual(run("--help").stdout.rstrip("\n").split("\n")[-1].strip(), FOOTER)

    def test_names_commands_and_options(self):
        text = run("--help").stdout
        for word in ("rpc", "version", "--version", "-V", "--help", "-h", "--no-color", "-n", "--log-level"):
            self.assertIn(word, text)

    def test_names_no_command_that_does_not_work(self):
        text = run("--help").stdout
        self.assertNotIn("prompt", text)

    def test_every_command_it_names_works(self):
        section = run("--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
        commands = re.findall(r"^  ([a-z]\S*)", section, re.MULTILINE)
        self.assertIn("rpc", commands)
        for command in commands:
            with self.subTest(command):
                result = run(command, "--help")
                self.assertEqual((result.stderr, result.returncode), ("", 0))

    def test_of_a_command(self):
        for arguments in (["rpc", "--help"], ["rpc", "-h"], ["version", "--help"]):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual((result.stderr, result.returncode), ("", 0))
                self.assertIn(arguments[0], result.stdout)

    def test_names_the_read_timeout_and_its_default(self):
        self.assertRegex(run("rpc", "--help").stdout, r"--read-timeout[^-]*\b30\b")

    def test_says_where_the_log_goes(self):
        self.assertIn("DUET_RPC_LOG", run("--help").stdout + run("rpc", "--help").stdout)


class BadUsage(suite.TestCase):
    def assert_refused(self, arguments, *told):
        result = run(*arguments)
        self.assertEqual((result.stdout, result.returncode), ("", 1))
        self.assertRegex(result.stderr, r"(?i)usage")
        for word in told:
            self.assertIn(word.lower(), result.stderr.lower())

    def test_unknown_command(self):
        self.assert_refused(["frobnicate"], "frobnicate")

    def test_unknown_flag(self):
        self.assert_refused(["--frobnicate"], "--frobnicate")
        self.assert_refused(["rpc", "--frobnicate"], "--frobnicate")

    def test_bad_level(self):
        for arguments in (["--log-level", "loud", "rpc"], ["rpc", "--log-level", "loud"], ["rpc", "--log-level=loud"]):
            with self.subTest(arguments):
                self.assert_refused(arguments, "loud", "debug", "info", "warn", "error")

    def test_missing_value(self):
        self.assert_refused(["rpc", "--log-level"], "--log-level")

    def test_bad_read_timeout(self):
        self.assert_refused(["rpc", "--read-timeout", "soon"], "soon", "--read-timeout")

    def test_near_misses_get_a_suggestion(self):
        for wrong, right in (("versoin", "version"), ("rcp", "rpc"), ("--hepl", "--help"),
                             ("--log-levle", "--log-level")):
            with self.subTest(wrong):
                self.assert_refused([wrong], wrong, "did you mean", right)

    def test_far_misses_get_none(self):
        self.assertNotIn("did you mean", run("xylophone").stderr.lower())

    def test_is_plain_text_in_a_pipe(self):
        self.assertNotIn("\x1b", run("frobnicate").stderr)


class Nested(suite.TestCase):
    """Commands with commands below them, and the program's other name."""

    def groups(self):
        section = run("--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
        names = re.findall(r"^  ([a-z]\S*)", section, re.MULTILINE)
        return [name for name in names if "Commands:\n" in run(name, "--help").stdout]

    def test_every_command_below_a_group_has_help(self):
        self.assertIn("daemon", self.groups())
        for group in self.groups():
            section = run(group, "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
            for name in re.findall(r"^  ([a-z]\S*)", section, re.MULTILINE):
                with self.subTest(f"{group} {name}"):
                    result = run(group, name, "--help")
                    self.assertEqual((result.stderr, result.returncode), ("", 0))
                    self.assertIn(f"Usage: duet-rpc {group} {name}", result.stdout)

    def test_a_group_alone_is_bad_usage(self):
        for group in self.groups():
            with self.subTest(group):
                result = run(group)
                self.assertEqual((result.stdout, result.returncode), ("", 1))
                self.assertRegex(result.stderr, r"COMMAND is missing: [a-z]+")

    def test_near_misses_at_every_level(self):
        for words, right in ((["deamon", "status"], "'daemon'"), (["daemon", "sttaus"], "'daemon status'"),
                             (["logs"], "'daemon logs'"), (["daemon", "stop", "--froce"], "'--force'"),
                             (["daemon", "status", "--projcet", "x"], "'--project'")):
            with self.subTest(words):
                result = run(*words)
                self.assertEqual((result.stdout, result.returncode), ("", 1))
                self.assertIn(f"Did you mean {right}?", result.stderr)

    def test_an_option_before_its_command_is_explained(self):
        self.assertIn("goes after the command", run("--read-timeout", "5", "rpc").stderr)

    def test_an_empty_level_is_refused(self):
        self.assertEqual(run("--log-level=", "debug").returncode, 1)

    def test_the_other_name_is_said_when_it_was_used(self):
        with tempfile.TemporaryDirectory() as folder:
            link = os.path.join(folder, "aiwg")
            os.symlink(suite.program(), link)
            for arguments, stream in ((["--help"], "stdout"), (["daemon", "--help"], "stdout"), (["frob"], "stderr"),
                                      (["completion", "bash"], "stdout")):
                result = subprocess.run([link, *arguments], capture_output=True, text=True, env=clean_environment(),
                                        stdin=subprocess.DEVNULL, timeout=PATIENCE)
                with self.subTest(arguments):
                    self.assertIn("aiwg", getattr(result, stream))
                    said = re.sub(r"\nFiles:\n.*?\n\n", "\n", getattr(result, stream), flags=re.DOTALL)  # have their own names
                    self.assertNotIn("duet-rpc", said)

    def test_the_build_makes_the_other_name(self):
        link = os.path.join(os.path.dirname(suite.program()), "aiwg")
        self.assertEqual(os.path.realpath(link), os.path.realpath(suite.program()))


class GlobalOptions(suite.TestCase):
    def test_before_and_after_the_command(self):
        for arguments in (["--log-level", "info", "-n", "rpc"], ["rpc", "--log-level", "info", "--no-color"],
                          ["--log-level=info", "rpc", "-n"], ["--no-color", "rpc", "--log-level=info"]):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual((result.stdout, result.returncode), ("", 0))
                self.assertIn("stdin closed, shutting down gracefully", result.stderr)

    def test_level_in_any_case(self):
        for level in ("info", "INFO", "Info", "dEbUg"):
            with self.subTest(level):
                self.assertIn("stdin closed", run("rpc", "--log-level", level).stderr)
        for level in ("warn", "WARN", "Error"):
            with self.subTest(level):
                self.assertEqual(run("rpc", "--log-level", level).stderr, "")


class Completion(suite.TestCase):
    def test_scripts_for_three_shells(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                result = run("completion", shell)
                self.assertEqual((result.stderr, result.returncode), ("", 0))
                for word in ("rpc", "version", "log-level"):
                    self.assertIn(word, result.stdout)

    def test_bash_completes_commands_and_levels(self):
        for words, expected in ((["duet-rpc", "r"], "rpc"), (["duet-rpc", "rpc", "--log-level", "de"], "debug"),
                                (["duet-rpc", "--no"], "--no-color")):
            with self.subTest(words):
                self.assertIn(expected, self.bash_completions(words))

    def bash_completions(self, words):
        """What bash would offer after these words, asked without a terminal."""
        script = """eval "$COMPLETION"
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
            complete -p duet-rpc >/dev/null || exit 1
            function=$(complete -p duet-rpc | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
            "$function" duet-rpc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
            printf '%s\n' "${COMPREPLY[@]}" """
        environment = clean_environment({"COMPLETION": run("completion", "bash").stdout})
        result = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], capture_output=True, text=True,
                                env=environment, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [line.strip() for line in result.stdout.splitlines()]

    def test_an_unknown_shell_is_bad_usage(self):
        self.assertEqual(run("completion", "tcsh").returncode, 1)


class Colour(suite.TestCase):
    def test_the_level_is_coloured_on_a_terminal_only(self):
        self.assertIn("\x1b[", self.log_on_terminal())
        self.assertNotIn("\x1b", run("rpc", "--log-level", "info").stderr)

    def test_no_color_the_option(self):
        self.assertNotIn("\x1b", self.log_on_terminal("--no-color"))
        self.assertNotIn("\x1b", self.log_on_terminal("-n"))

    def test_no_color_the_variable(self):
        self.assertNotIn("\x1b", self.log_on_terminal(env={"NO_COLOR": "1"}))
        self.assertIn("\x1b[", self.log_on_terminal(env={"NO_COLOR": ""}))

    def test_a_file_gets_none(self):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            run_on_terminal([suite.program(), "rpc"], env={"DUET_RPC_LOG": log})
            with open(log, encoding="utf-8") as file:
                text = file.read()
        self.assertIn("stdin closed", text)
        self.assertNotIn("\x1b", text)

    def test_help_and_errors_obey(self):
        for arguments, stream in ((["--help"], "stdout"), (["frobnicate"], "stderr")):
            with self.subTest(arguments):
                self.assertNotIn("\x1b", run_on_terminal([suite.program(), "--no-color", *arguments], [stream])[0])
                plain = run_on_terminal([suite.program(), *arguments], [stream], env={"NO_COLOR": "1"})[0]
                self.assertNotIn("\x1b", plain)
                shown = run_on_terminal([suite.program(), *arguments], [stream])[0]
                self.assertEqual(re.sub(r"\x1b\[[0-9;]*m", "", shown), plain, "colour changes nothing but colour")

    def log_on_terminal(self, *arguments, env=None):
        argv = [suite.program(), "rpc", "--log-level", "info", *arguments]
        shown, code = run_on_terminal(argv, ["stderr"], env)
        self.assertEqual(code, 0)
        self.assertIn("stdin closed", shown)
        return shown


if __name__ == "__main__":
    suite.main()
