"""The benchmarks, with their tables.

    python -m benchmarks.run [--fake] [--hosted] [--flows] [--wires] [--retrieval] [--http]
                             [--rounds 21] [--only TEXT] [--out FILE]

``--fake`` are the rows without network, ``--hosted`` those of a host over SQLite, ``--flows`` those of flows,
``--wires`` those of each wire, ``--retrieval`` those of searches in documents, ``--http`` whole turns beside plain
aiohttp loops; without any, all. Trust CPU and ratios; wall times only on a quiet machine. tests/bench checks the
budgets of all but the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import (
    children,
    commentary,
    envelope,
    failover,
    flow_turns,
    flow_wakes,
    governed,
    hosted,
    in_process,
    over_http,
    retrieval,
    skills,
    two_workers,
    windows,
    wires,
)


def main() -> int:
    """Measures, prints, writes."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--fake", action="store_true", help="the rows without network")
    arguments.add_argument("--hosted", action="store_true", help="the rows of a host over SQLite")
    arguments.add_argument("--flows", action="store_true", help="the rows of flows")
    arguments.add_argument("--wires", action="store_true", help="the rows of each wire")
    arguments.add_argument("--retrieval", action="store_true", help="the rows of searches in documents")
    arguments.add_argument("--http", action="store_true", help="the rows beside plain aiohttp loops")
    arguments.add_argument("--rounds", type=int, default=21, help="blocks of each HTTP row")
    arguments.add_argument("--only", default="", help="HTTP rows whose name holds this text")
    arguments.add_argument("--out", type=Path, help="where to write the figures; the table goes beside them")
    options = arguments.parse_args()
    every = not (options.fake or options.hosted or options.flows or options.wires or options.retrieval or options.http)
    told: dict[str, Any] = {"machine": _machine()}
    tables: list[str] = [" ".join(f"{name}={value}" for name, value in told["machine"].items())]
    if options.http or every:
        pairs = over_http.measured(options.rounds, options.only)
        told["over http"] = msgspec.to_builtins(pairs)
        tables.append(over_http.table(pairs))
        print(tables[-1], flush=True)
    if options.fake or every:
        parts = (in_process, failover, skills, children, windows, commentary, governed)
        rows = [row for part in parts for row in asyncio.run(part.measured())]
        told["without network"] = msgspec.to_builtins(rows)
        tables.append(in_process.table(rows))
        print(tables[-1], flush=True)
    if options.hosted or every:
        costs, workers = asyncio.run(hosted.measured()), two_workers.measured()
        told["hosted"], told["two processes"] = msgspec.to_builtins(costs), msgspec.to_builtins(workers)
        tables += [hosted.table(costs), two_workers.table(workers)]
        print("\n\n".join(tables[-2:]))
    if options.flows or every:
        turns, words = asyncio.run(flow_turns.measured()), asyncio.run(envelope.measured())
        wakes = flow_wakes.measured()
        told["flows"] = msgspec.to_builtins({"turns": turns, "words": words, "wakes": wakes})
        tables += [flow_turns.table(turns), envelope.table(words), flow_wakes.table(wakes)]
        print("\n\n".join(tables[-3:]))
    if options.wires or every:
        rows = asyncio.run(wires.measured())
        told["wires"] = msgspec.to_builtins(rows)
        tables.append(wires.table(rows))
        print(tables[-1], flush=True)
    if options.retrieval or every:
        rows = asyncio.run(retrieval.measured())
        told["retrieval"] = msgspec.to_builtins(rows)
        tables.append(retrieval.table(rows))
        print(tables[-1], flush=True)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(told, indent=1) + "\n")
        options.out.with_suffix(".txt").write_text("\n\n".join(tables) + "\n")
    return 0


def _machine() -> dict[str, str]:
    """What the figures were taken on, as far as it matters."""
    busy = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "load": busy,
    }


if __name__ == "__main__":
    sys.exit(main())
