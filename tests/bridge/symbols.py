#!/usr/bin/env python3
"""Places by name: in a line, in a file, in the project; with a server whose symbols are set."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from bridge_project import BridgeTestCase, suite, uri  # noqa: E402

TEXT = """class Server {
  void start();
};
class Client {
  void start();
};
int (*Go).Start, foo/1, operator==;
ä你😀 start start_again
"""


def range_at(line, column, length):
    return {"start": {"line": line, "character": column}, "end": {"line": line, "character": column + length}}


def nested(name, line, column, kind=6, children=(), end=None):
    extent = {"start": {"line": line, "character": 0}, "end": {"line": line if end is None else end, "character": 1}}
    return {"name": name, "kind": kind, "range": extent, "selectionRange": range_at(line, column, len(name)),
            "children": list(children)}


NESTED = [nested("Server", 0, 6, 5, [nested("start", 1, 7)], 2), nested("Client", 3, 6, 5, [nested("start", 4, 7)], 5),
          nested("(*Go).Start", 6, 4), nested("foo/1", 6, 17), nested("operator==", 6, 24)]


class Names(BridgeTestCase):
    def set_up(self, document_symbols, workspace_symbols=None):
        options = ["--answer", "documentSymbol=" + json.dumps(document_symbols)]
        if workspace_symbols is not None:
            options += ["--capability", "workspaceSymbolProvider", "--answer", "symbol=" + json.dumps(workspace_symbols)]
        self.file = self.write("a.fake", TEXT)
        self.set_servers(fake=options)
        self.start()

    def at(self, **params):
        at = self.ask("lsp.hover", **params)["at"]
        return at["line"], at["column"]

    def refusal(self, **params):
        error = self.answer("lsp.hover", **params)["error"]
        self.assertEqual(error["code"], -32602, error)
        return error["data"]

    def test_in_a_file(self):
        self.set_up(NESTED)
        self.assertEqual(self.at(file=self.file, symbol="Server.start"), (2, 8))
        self.assertEqual(self.at(file=self.file, symbol="Client::start"), (5, 8))
        self.assertEqual(self.at(file=self.file, symbol="Go.Start"), (7, 5))
        several = self.refusal(file=self.file, symbol="start")
        self.assertEqual((several["reason"], several["count"]), ("ambiguous", 2))
        self.assertEqual(several["candidates"][0],
                         {"path": "Server.start", "kind": "method", "file": self.file, "line": 2, "column": 8})
        none = self.refusal(file=self.file, symbol="Servr")
        self.assertEqual((none["reason"], none["near"]), ("not-found", ["Server"]))

    def test_every_path_that_is_printed_is_accepted(self):
        self.set_up(NESTED)
        for query in ("start", "Server", "Go", "foo", "operator"):
            for symbol in self.ask("lsp.find", query=query, file=self.file)["symbols"]:
                self.assertEqual(self.at(file=self.file, symbol=symbol["path"]), (symbol["line"], symbol["column"]))

    def test_flat_symbols(self):
        self.set_up([{"name": "start", "kind": 6, "containerName": "Server",
                      "location": {"uri": uri(self.path("a.fake")), "range": range_at(1, 7, 5)}}])
        found = self.ask("lsp.find", query="start", file=self.file)
        self.assertEqual([(s["path"], s["line"], s["column"]) for s in found["symbols"]], [("Server.start", 2, 8)])
        self.assertEqual(self.at(file=self.file, symbol="Server::start"), (2, 8))

    def test_near_a_line(self):
        self.set_up(NESTED)
        self.assertEqual(self.at(file=self.file, line=8, symbol="start"), (8, 5))  # whole words, in code points
        self.assertEqual(self.at(file=self.file, line=1, symbol="start"), (2, 8))
        self.assertEqual(self.at(file=self.file, line=3, symbol="start"), (2, 8))
        self.assertEqual(self.at(file=self.file, line=4, symbol="start"), (5, 8))
        self.assertEqual(self.at(file=self.file, line=7, symbol="operator=="), (7, 25))
        self.assertEqual(self.refusal(file=self.file, line=1, symbol="start_again")["reason"], "not-found")
        self.assertEqual(self.refusal(file=self.file, line=99, symbol="start")["param"], "line")

    def test_an_extent_is_all_of_a_symbol(self):
        self.set_up(NESTED)
        server = self.ask("lsp.find", query="Server", file=self.file)["symbols"][0]
        self.assertEqual(server["extent"], {"line": 1, "column": 1, "endLine": 3, "endColumn": 2})
        self.assertEqual(self.ask("lsp.symbols", file=self.file)["symbols"][0]["extent"], server["extent"])

    def test_in_the_project(self):
        self.write("b.fake", "nothing\n")
        self.set_up([], [{"name": "start", "kind": 6, "containerName": "Client",
                          "location": {"uri": uri(self.path("a.fake")), "range": range_at(4, 7, 5)}},
                         {"name": "old", "kind": 12, "containerName": "",
                          "location": {"uri": uri(self.path("b.fake")), "range": range_at(0, 0, 3)}}])
        self.assertEqual(self.cause("lsp.find", query="start"), "no-server")  # none runs
        self.assertEqual(self.cause("lsp.hover", symbol="start"), "no-server")
        self.ask("lsp.start", server="fake")
        found = self.ask("lsp.find", query="start")
        self.assertEqual([s["path"] for s in found["symbols"]], ["Client.start"])
        self.assertEqual((found["server"], found["complete"], found["fresh"]), ("fake", True, False))  # of b.fake
        self.assertEqual(self.at(symbol="Client.start"), (5, 8))
        self.write("a.fake", "\n" + TEXT)  # the index is older
        self.assertEqual(self.at(symbol="Client.start"), (6, 8))
        self.assertEqual(self.refusal(symbol="clientstart")["reason"], "not-found")

    def test_a_server_that_does_not_look_by_name(self):
        self.set_up(NESTED)
        self.ask("lsp.start", server="fake")
        self.assertEqual(self.cause("lsp.hover", symbol="start"), "no-server")

    def test_what_makes_no_sense(self):
        self.set_up(NESTED)
        self.assertEqual(self.refusal()["param"], "file")
        self.assertEqual(self.refusal(line=3, symbol="start")["param"], "line")
        self.assertEqual(self.refusal(file=self.file, line=2, column=1, symbol="start")["param"], "symbol")
        self.assertEqual(self.refusal(file=self.file, symbol="")["param"], "symbol")
        error = self.answer("lsp.find", query="x" * 2000)["error"]
        self.assertEqual(error["data"]["param"], "query")

    def test_on_the_command_line(self):
        self.set_up(NESTED)
        found = self.project.run("lsp", "find", "--file", "a.fake", "start")
        self.assertEqual((found.code, found.out), (0, "a.fake:2:8: method Server.start\na.fake:5:8: method Client.start\n"
                                                  "a.fake:7:5: method (*Go).Start\n"))
        hover = self.project.run("lsp", "hover", "--json", "a.fake#Server.start")
        self.assertEqual(hover.json()["at"]["line"], 2, hover)
        self.assertEqual(self.project.run("lsp", "hover", "--json", "a.fake:4#start").json()["at"]["line"], 5)
        self.assert_refused(self.project.run("lsp", "hover", "a.fake#start"), 1,
                            r"'start' names 2 symbols: Server\.start method a\.fake:2, Client\.start method a\.fake:5")
        self.assert_refused(self.project.run("lsp", "hover", "a.fake#Servr"), 1, "'Servr'; there is Server")
        self.write("odd#name.fake", "x\n")
        self.assertEqual(self.project.run("lsp", "hover", "odd#name.fake").code, 0)


if __name__ == "__main__":
    suite.main()
