"""Where the cases of the specification that speak of hosting stand, and what is left to which later issue.

Sections: ``conversation-chat-cases.md`` F, ``loop-cases.md`` G and 170 to 174, ``flows-cases.md`` H and P.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parent.parent
SHARED = Path(os.environ.get("ONRECORD_SHARED") or TESTS.parent.parent / "shared") / "spec"
CONFORMANCE = "../src/onrecord/testing/conformance"

COVERED: dict[str, tuple[str, ...]] = {
    "chat F2": ("prompt/test_buckets.py::test_the_buckets_are_read_once",),
    "chat F4": ("host/test_cases.py::test_f4_",),
    "chat F7": ("host/test_cases.py::test_f7_",),
    "chat F8": ("host/test_cases.py::test_f8_",),
    "chat F9": ("host/test_cases.py::test_f9_",),
    "chat F11": ("host/test_cases.py::test_f11_",),
    "chat F18": ("host/test_cases.py::test_f18_",),
    "chat F24": ("conversation/test_display.py::test_f24_",),
    "loop 81": (
        "host/test_cases.py::test_g81_",
        "turn/pausing/test_asking.py::test_a_handler_returns_a_question_and_its_answer_is_the_result",
    ),
    "loop 82": ("host/test_cases.py::test_g82_",),
    "loop 83": ("turn/pausing/test_batches.py::test_the_group_of_the_asker_finishes_and_later_calls_wait",),
    "loop 86": ("turn/pausing/test_batches.py::test_an_approved_call_may_still_be_denied_behind_the_asker",),
    "loop 85": ("governance/test_check_in.py::test_g85_",),
    "loop 87": ("governance/test_check_in.py::test_g87_",),
    "loop 91": ("governance/test_credentials.py::test_g91_",),
    "loop 93": ("governance/test_collect.py::test_g93_",),
    "loop 170": ("host/test_cases.py::test_170_",),
    "loop 171": ("host/test_cases.py::test_171_",),
    "loop 174": ("mcp_bridge/test_governed.py::test_174_", "mcp_bridge/test_results.py::test_174_"),
    "flows H2": ("flows/test_cases_h.py::test_h2_fire", "flows/test_cases_h.py::test_h2_the_last"),
    "flows H4": ("flows/test_cases_h.py::test_h4_",),
    "flows H5": ("flows/test_cases_h.py::test_h5_broken",),
    "flows H6": ("flows/test_cases_h.py::test_h6_if_at", "flows/test_cases_h.py::test_h6_if_when"),
    "flows H7": ("flows/test_cases_h.py::test_h7_replaces", "flows/test_cases_h.py::test_h7_business"),
    "flows H9": ("host/test_cases.py::test_h9_",),
    "flows H10": ("host/test_cases.py::test_h10_a_wake", "host/test_cases.py::test_h10_who"),
    "flows H12": ("flows/test_cases_h.py::test_h12_pending_wakes",),
    "flows H13": ("flows/test_cases_h.py::test_h13_outbound", "flows/test_cases_h.py::test_h13_inbound"),
    "flows O1": ("host/test_cases.py::test_o1_",),
    "flows P1": (
        f"{CONFORMANCE}/store_commits.py::test_the_second_of_two_writers_is_refused",
        f"{CONFORMANCE}/store_commits.py::test_a_session_is_created_once",
        f"{CONFORMANCE}/store_commits.py::test_of_many_writers_exactly_one_wins",
        f"{CONFORMANCE}/store_reading.py::test_a_session_nobody_stored_is_none",
        f"{CONFORMANCE}/store_reading.py::test_the_store_alone_counts_versions",
    ),
    "flows P2": (f"{CONFORMANCE}/store_reading.py::test_the_small_state_comes_back_equal",),
}
"""Case to tests, as ``file::beginning of a name`` below ``tests/``."""

LATER: dict[str, str] = {
    "chat F1": "the companion's hooks; here moments and watchers",
    "chat F3": "supplements of the companion",
    "chat F12": "the companion's screen; here every delta comes",
    "chat F15": "stickers",
    "chat F19": "scenes",
    "chat F20": "notices of recipes",
    "chat F21": "skills that a person sends with a message; what an agent takes up is in tests/skills",
    "chat F22": "references to tools in a message",
    "chat F23": "audio transcripts",
    "loop 173": "agents as MCP servers: issue of the server",
    "flows P5": "Redis",
    "flows P6": "Postgres",
}

NO_COUNTERPART: dict[str, str] = {
    "chat F13": "a host has no visible session: whoever reads `host.live` is shown it, whoever does not is not",
    "loop 172": "a host serves whoever calls it; owners are checked by the server, which is a later issue",
}


@pytest.mark.parametrize("place", sorted({place for places in COVERED.values() for place in places}))
def test_each_named_test_exists(place: str) -> None:
    """The table cannot go stale."""
    file, _, name = place.partition("::")
    assert re.search(rf"^ *(async )?def {name}", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_no_case_stands_in_two_columns() -> None:
    """Covered, later, or without a counterpart."""
    columns = [*COVERED, *LATER, *NO_COUNTERPART]
    assert len(columns) == len(set(columns))


@pytest.mark.parametrize(
    ("spec", "file", "pattern"),
    [
        ("chat", "conversation-chat-cases.md", r"^\d+\. \*\*(F\d+)\*\*"),
        ("loop", "loop-cases.md", r"^(8[1-9]|9[0-3]|17[0-4])\. \*\*"),
        ("flows", "flows-cases.md", r"^\*\*([HP]\d+)\b"),
    ],
)
def test_every_case_of_these_sections_stands_in_the_table(spec: str, file: str, pattern: str) -> None:
    """Compared with the specification itself, where that folder is at hand."""
    if not (SHARED / file).exists():
        pytest.skip(f"no cases: set ONRECORD_SHARED to the folder that has spec/{file} in it")
    found = re.findall(pattern, (SHARED / file).read_text(encoding="utf-8"), re.MULTILINE)
    known = {*COVERED, *LATER, *NO_COUNTERPART}
    assert {f"{spec} {one}" for one in found} - known == set()
