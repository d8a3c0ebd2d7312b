"""A canary: a text that must stay in the record and the conversation, and turn up nowhere else."""

import logging
import traceback
import zlib
from collections.abc import Iterator

import pytest


class Canary:
    """``text`` is what a test puts into messages, arguments or results; ``absent_from`` is what it then asserts."""

    def __init__(self, name: str) -> None:
        self.text = f"canary-{name}-7f3a91"

    def absent_from(self, where: str, seen: object) -> None:
        """Fail when the canary is in what a stranger could see of this: its text, repr, bytes or traceback."""
        views = [str(seen), repr(seen)]
        if isinstance(seen, bytes):
            views.append(seen.decode("utf-8", "replace"))
        if isinstance(seen, BaseException):
            views += ["".join(traceback.format_exception(seen, chain=True)), str(vars(seen))]
        assert not any(self.text in view for view in views), f"the canary got into {where}"


@pytest.fixture
def canary(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Canary]:
    """A canary of this test. Logs are read at every level, and checked when the test ends."""
    caplog.set_level(logging.DEBUG)
    # Short and plain, so that nothing that cuts or escapes text can hide it.
    bird = Canary(f"{zlib.crc32(request.node.name.encode()):08x}")
    yield bird
    for record in caplog.get_records("call"):
        bird.absent_from(f"a log line of {record.name}", logging.Formatter().format(record))
        bird.absent_from(f"the arguments of a log line of {record.name}", record.__dict__)
