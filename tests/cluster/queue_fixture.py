"""A queue of its own for every test, on one server for a file. A file calls `run()`; its module has the names
setUpModule and tearDownModule from here."""

import unittest

import server
from queue_calls import Caller, Worker

SERVER = None
DATABASE = "work"


def setUpModule():
    global SERVER
    SERVER = server.Server().__enter__()
    SERVER.make_database(DATABASE)
    server.install(SERVER, DATABASE)


def tearDownModule():
    SERVER.__exit__()


def run():
    server.skip_unless_installed()
    unittest.main(verbosity=2)


class QueueTest(unittest.TestCase):
    def setUp(self):
        self.database = DATABASE
        self.callers = []
        self.empty()
        self.one = self.worker("one")

    def tearDown(self):
        for caller in self.callers:
            caller.close()

    def empty(self):
        """As it was when the queue was founded."""
        caller = self.caller()
        tables = [row[0] for row in caller.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'duet'")]
        caller.ask("TRUNCATE " + ", ".join(f"duet.{table}" for table in tables) + " RESTART IDENTITY")
        caller.ask("SELECT setval('duet.task_id', 1, false), setval('duet.fence', 1, false), setval('duet.event_id', 1, false)")
        caller.ask("SELECT duet.found_v1('site')")

    def worker(self, name, **options):
        worker = Worker(SERVER, self.database, name, **options)
        self.callers.append(worker)
        return worker

    def caller(self):
        caller = Caller(SERVER, self.database)
        self.callers.append(caller)
        return caller

    def state(self, id):
        return self.one.task(id).state

    def assert_refused(self, code, function, *arguments):
        with self.assertRaises(server.SqlError) as caught:
            function(*arguments)
        self.assertEqual(caught.exception.code, code)
        return caught.exception.message

    def assert_counts(self):
        """The counts that come with numbers are those of the tasks."""
        self.one.number()
        stats = self.one.json("read_stats_v1")
        del stats["slots"]
        counted = {name: 0 for name in stats}
        for row in self.one.ask("SELECT duet.state_word(duet.world(state, announced)), count(*) FROM duet.task GROUP BY 1"):
            counted[row[0]] = int(row[1])
        self.assertEqual(stats, counted)
