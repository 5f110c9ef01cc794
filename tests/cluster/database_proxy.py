"""A proxy between a daemon and its server, on Unix sockets, that can be unkind: each direction by itself.

    with proxy.Proxy(server) as between:
        store = between.url("work")
        between.up.mode = proxy.DROP      # what the daemon sends is taken and thrown away
        between.down.mode = proxy.STALL   # what the server sends is not even read
        between.cut()                     # every connection is closed, new ones are welcome
        between.refusing = True           # and now they are not
        between.freeze()                  # the connections of now carry nothing any more, and are not closed; new ones are fine
"""

import asyncio
import os
import shutil
import threading

import server

PASS, DROP, STALL, DELAY = "pass", "drop", "stall", "delay"


class Direction:
    def __init__(self):
        self.mode, self.seconds = PASS, 0.0


class Proxy:
    """One address before one server; its directions are those of all its connections."""

    def __init__(self, behind):
        self.target = f"{behind.folder}/.s.PGSQL.{behind.port}"
        self.folder = server.temporary_folder()
        self.up, self.down = Direction(), Direction()
        self.refusing = False
        self.writers = set()
        self.loop = asyncio.new_event_loop()

    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database, user="tester"):
        return f"postgresql://{user}@{self.folder.replace('/', '%2F')}:5432/{database}"

    def kind(self):
        """All passes again. What was stalled goes on."""
        self.up.mode = self.down.mode = PASS
        self.refusing = False

    def freeze(self):
        """The next connections have directions of their own."""
        self.up.mode = self.down.mode = STALL
        self.up, self.down = Direction(), Direction()

    def cut(self):
        """Closes all connections of now."""
        self.loop.call_soon_threadsafe(self._cut)

    def _cut(self):
        for writer in list(self.writers):
            writer.transport.abort()

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        path = os.path.join(self.folder, ".s.PGSQL.5432")
        listener = self.loop.run_until_complete(asyncio.start_unix_server(self._serve, path))
        os.chmod(path, 0o777)
        ready.set()
        self.loop.run_forever()
        listener.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self._cut()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _serve(self, reader, writer):
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there_reader, there_writer = await asyncio.open_unix_connection(self.target)
        except OSError:
            writer.transport.abort()
            return
        self.writers |= {writer, there_writer}
        await asyncio.gather(self._pump(reader, there_writer, self.up), self._pump(there_reader, writer, self.down))
        self.writers -= {writer, there_writer}

    async def _pump(self, reader, writer, direction):
        """An end is passed on, too, unless the direction says nothing at all."""
        try:
            while True:
                while direction.mode == STALL:
                    await asyncio.sleep(0.02)
                data = await reader.read(1 << 16)
                if direction.mode == DELAY:
                    await asyncio.sleep(direction.seconds)
                while direction.mode == STALL:
                    await asyncio.sleep(0.02)
                if not data:
                    break
                if direction.mode != DROP:
                    writer.write(data)
                    await writer.drain()
        except (OSError, RuntimeError):
            pass
        while direction.mode == DROP:
            await asyncio.sleep(0.02)
        writer.close()
