"""Which modules an agent loads: one alone, then one with each idle feature, each in a child process of its own.

    python -m tests.features.modules

prints one JSON object: for ``bare`` all modules of the library, for each feature those that came on top.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from tests.features.idle import IDLE
from tests.features.talk import PLAIN, QUIET, Talker, played

__all__ = ()


def main() -> None:
    """Prints it."""
    asyncio.run(played(model=Talker(PLAIN), inputs=QUIET))
    bare = set(sys.modules)
    told = {"bare": sorted(name for name in bare if name.startswith("onrecord"))}
    for name, idle in IDLE.items():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            asyncio.run(played(idle.make(), model=Talker(PLAIN), inputs=QUIET))
            os.write(writing, json.dumps(sorted(set(sys.modules) - bare)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told[name] = json.loads(pipe.read())
        os.waitpid(child, 0)
    print(json.dumps(told))  # noqa: T201 - its output is its purpose


if __name__ == "__main__":
    main()
