"""A session lives as long as its event loop, in one process, and ends without a word."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SERVER = """
import asyncio, contextlib, gc, logging, os, socketserver, sys, threading
from onrecord.net.transport import close, post, prewarm

# In development mode asyncio also tells what took long: that is the machine's, when it is busy.
logging.getLogger("asyncio").addFilter(lambda told: not str(told.msg).startswith("Executing"))

BODY = b'{"ok":true}'
CHUNKS = b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n9\\r\\ndata: 1\\n\\n\\r\\n"

class Handler(socketserver.StreamRequestHandler):
    # Answers with the number of its connection; a POST to /stream gets one event and then nothing.
    count = 0
    def handle(self):
        Handler.count += 1
        number = b"%d" % Handler.count
        while line := self.rfile.readline():
            length = 0
            while (field := self.rfile.readline()).strip():
                if field.lower().startswith(b"content-length:"):
                    length = int(field[15:])
            self.rfile.read(length)
            if b"/stream" in line:
                self.wfile.write(CHUNKS)
            else:
                self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(number), number))

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    def handle_error(self, request, client_address):
        pass

server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/"

async def ask():
    async with post(url, BODY, headers={}, provider="acme") as reply:
        return int(await reply.read())

def done():
    gc.collect()
    server.shutdown()
    server.server_close()
    print("done")
"""


def run(script: str) -> str:
    """Runs a script beside the little server; every warning and every word on stderr is a failure."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", SERVER + textwrap.dedent(script) + "\ndone()\n"],
        capture_output=True,
        text=True,
        timeout=18,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "no_proxy": "*"},
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.endswith("done\n")
    return done.stdout


@pytest.mark.parametrize(
    "main",
    [
        "await ask()",
        "await asyncio.gather(*(ask() for _ in range(20)))",
        "await ask(); await close()",
        "await prewarm()",
        "task = asyncio.create_task(ask()); await asyncio.sleep(0); task.cancel()",
        "task = asyncio.create_task(ask()); await asyncio.sleep(0.3)",
    ],
)
def test_a_plain_script_ends_cleanly(main: str) -> None:
    """`asyncio.run` is all a script needs."""
    run(f"""
        async def main():
            {main}
        asyncio.run(main())
    """)


def test_a_script_that_ends_in_the_middle_of_a_stream() -> None:
    """The stream's task is cancelled by `asyncio.run`, its connection goes with the session."""
    run("""
        async def stream(started):
            async with post(url + "stream", BODY, headers={}, provider="acme") as reply:
                async for batch in reply.event_batches(silence_s=5):
                    started.set()
        async def main():
            started = asyncio.Event()
            task = asyncio.create_task(stream(started))
            await started.wait()
        asyncio.run(main())
    """)


def test_an_exception_ends_cleanly() -> None:
    """Also out of an open reply."""
    run("""
        async def main():
            async with post(url + "stream", BODY, headers={}, provider="acme") as reply:
                async for batch in reply.event_batches(silence_s=5):
                    raise KeyError
        with contextlib.suppress(KeyError):
            asyncio.run(main())
    """)


def test_one_loop_after_another() -> None:
    """Each run has connections of its own, and so has each `Runner`, which keeps them between its calls."""
    run("""
        assert [asyncio.run(ask()), asyncio.run(ask())] == [1, 2]
        with asyncio.Runner() as runner:
            assert [runner.run(ask()), runner.run(ask())] == [3, 3]
        with asyncio.Runner() as runner:
            assert runner.run(ask()) == 4
    """)


def test_a_loop_driven_by_hand() -> None:
    """A loop that is shut down as the documentation of asyncio says is clean; the next one starts afresh."""
    run("""
        for number in (1, 2):
            loop = asyncio.new_event_loop()
            assert loop.run_until_complete(ask()) == number
            assert loop.run_until_complete(ask()) == number
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
    """)


def test_a_loop_closed_without_a_farewell() -> None:
    """The next loop works, and all that is left of the old session is what asyncio says of any open socket."""
    run("""
        import warnings
        old = asyncio.new_event_loop()
        assert old.run_until_complete(ask()) == 1
        old.run_until_complete(old.shutdown_default_executor())
        old.close()
        del old
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert asyncio.run(ask()) == 2
            gc.collect()
        assert {str(warning.message).split(" ")[0] for warning in told} <= {"unclosed"}, told
        assert not [warning for warning in told if "session" in str(warning.message)]
    """)


def test_many_loops_in_many_threads() -> None:
    """Loops that run at the same time share nothing."""
    run("""
        told = []
        def work():
            async def several():
                return {await ask() for _ in range(5)}
            told.append(asyncio.run(several()))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert sorted(number for numbers in told for number in numbers) == list(range(1, 9)), told
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_starts_afresh() -> None:
    """It opens its own connections and leaves the parent's alone, whatever it collects and however it exits."""
    run("""
        async def main():
            assert await ask() == 1
            pid = os.fork()
            if not pid:
                # The child is in the middle of the parent's coroutine: its own work needs a thread without a loop.
                told = []
                def work():
                    told.append([asyncio.run(ask()), asyncio.run(ask())])
                    gc.collect()
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
                os._exit(0 if told == [[2, 3]] else 1)
            _, status = await asyncio.to_thread(os.waitpid, pid, 0)
            assert status == 0, status
            assert await ask() == 1
        asyncio.run(main())
        # A child that is made between two runs, and exits as a program does.
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(ask()) == 4
        pid = os.fork()
        if not pid:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what a child says of sockets it was born with
            assert asyncio.run(ask()) == 5
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert loop.run_until_complete(ask()) == 4
        loop.run_until_complete(close())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    """)


def test_importing_is_cheap() -> None:
    """The client is imported when it is used, and then not on the loop."""
    run("""
        assert not {"aiohttp", "yarl", "multidict"} & set(sys.modules)
        threads = set()
        class Finder:
            def find_spec(name, path=None, target=None):
                if name == "aiohttp":
                    threads.add(threading.current_thread())
        sys.meta_path.insert(0, Finder)
        asyncio.run(ask())
        sys.meta_path.remove(Finder)
        assert threads and threading.main_thread() not in threads
    """)


async def test_tasks_that_start_together_share_one_session() -> None:
    """The first requests of a loop race for opening it."""
    from onrecord.net import transport

    await transport.close()
    before, loop = threading.active_count(), asyncio.get_running_loop()  # what other tests left is theirs
    await asyncio.gather(*(transport.prewarm() for _ in range(10)))
    first = transport._clients.now(loop)
    await transport.prewarm()
    assert first is not None
    assert transport._clients.now(loop) is first
    assert threading.active_count() < before + 10
