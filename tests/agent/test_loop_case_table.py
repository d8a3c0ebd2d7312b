"""Where each case of ``spec/loop-cases.md`` A to D, F, H and L stands, and what is left to which later issue.

``COVERED`` names the tests. ``LATER`` names the issue whose feature a case is about: 6 is the governed agent (rules
for people in the loop, windows, skills, memory, artifacts, cost), *honesty* the layers that no issue is filed for yet.
``NO COUNTERPART`` says why a case has nothing to hold on to here.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

TESTS = Path(__file__).parent.parent
SHARED = Path(os.environ.get("ONRECORD_SHARED") or TESTS.parent.parent / "shared")
CASES = SHARED / "spec" / "loop-cases.md"
SECTIONS = {
    "A": (1, 23, 19),
    "B": (24, 32, 9),
    "C": (34, 43, 9),
    "D": (46, 62, 11),
    "F": (73, 80, 6),
    "H": (95, 98, 4),
    "L": (132, 139, 6),
}
"""The sections' first and last case, and how many there are: numbers are left out in between."""

COVERED: dict[int, tuple[str, ...]] = {
    1: ("agent/test_declaring.py::test_a1_",),
    3: ("agent/test_loop_cases.py::test_a3_a4_",),
    4: (
        "agent/test_loop_cases.py::test_a3_a4_",
        "turn/test_typed_output.py::test_a19_a_fallback",
        "prompt/test_thinking.py::test_a4_thinking",
    ),
    5: ("turn/test_moment_request.py::test_a5_",),
    7: ("agent/test_declaring.py::test_a7_",),
    8: ("agent/test_declaring.py::test_a7_",),
    9: ("agent/test_declaring.py::test_a9_",),
    10: ("honesty/test_self_explain.py::test_a10_",),
    11: ("turn/test_settle_and_watch.py::test_a11_",),
    15: ("agent/test_declaring.py::test_a15_",),
    19: ("turn/test_typed_output.py::test_a19_a_fallback", "turn/test_typed_output.py::test_a19_a_canned"),
    22: ("agent/test_loop_cases.py::test_a22_",),
    24: ("agent/test_loop_cases.py::test_b24_a_blank", "agent/test_loop_cases.py::test_b24_a_message"),
    25: ("agent/test_loop_cases.py::test_b25_",),
    27: ("agent/test_loop_cases.py::test_b27_a_next",),
    28: ("agent/test_loop_cases.py::test_b28_",),
    30: ("agent/test_loop_cases.py::test_b30_",),
    31: ("agent/test_loop_cases.py::test_b31_b32_",),
    32: ("agent/test_loop_cases.py::test_b31_b32_",),
    34: ("agent/test_loop_cases.py::test_c34_",),
    35: ("agent/test_loop_cases.py::test_c35_",),
    36: ("agent/test_loop_cases.py::test_c36_",),
    37: ("agent/test_loop_cases.py::test_c37_",),
    38: ("agent/test_loop_cases.py::test_c38_",),
    39: ("turn/test_moment_request.py::test_c39_",),
    40: ("agent/test_loop_cases.py::test_c40_",),
    41: ("agent/test_loop_cases.py::test_c41_",),
    43: ("turn/test_tool_context.py::test_c43_identity", "turn/test_tool_context.py::test_c43_a_turn"),
    46: ("turn/test_tool_batches.py::test_d46_",),
    48: ("agent/test_loop_cases.py::test_d48_", "turn/test_tool_gates.py::test_m9_"),
    49: ("agent/test_loop_cases.py::test_d49_",),
    54: ("agent/test_loop_cases.py::test_d54_",),
    57: ("agent/test_loop_cases.py::test_d57_",),
    73: ("turn/test_moment_tools.py::test_f73_",),
    76: ("turn/test_moment_input.py::test_f76_",),
    77: ("turn/test_moment_input.py::test_f77_",),
    78: ("turn/test_moment_output.py::test_f78_nothing", "turn/test_moment_output.py::test_f78_a_rule"),
    79: ("turn/test_moment_output.py::test_f79_", "agent/test_loop_cases.py::test_f79_"),
    80: ("turn/test_moment_input.py::test_f80_",),
    95: ("agent/test_loop_cases.py::test_h95_",),
    96: ("agent/test_loop_cases.py::test_h96_",),
    97: ("agent/test_loop_cases.py::test_h97_",),
    98: ("governance/test_budget.py::test_h98_each", "governance/test_budget.py::test_h98_a_turn"),
    132: ("turn/test_typed_output.py::test_132_",),
    134: ("turn/test_typed_output.py::test_134_",),
    136: ("models/test_call_rules.py::test_l136_",),
    137: ("models/test_breaker.py::test_l137_",),
    138: ("prompt/test_thinking.py::test_l138_a_budget", "prompt/test_thinking.py::test_l138_l192_"),
    139: ("prompt/test_cache_marks.py::test_l139_the_mark", "prompt/test_cache_marks.py::test_l139_the_card"),
}
"""Case to tests, as ``file::beginning of a name`` below ``tests/``."""

LATER: dict[int, str] = {
    12: "issue 6: check-ins",
    13: "issue 6: check-ins",
    16: "issue 6: windows keep last tool results",
    17: "issue 6: steps of skills and graphs",
    23: "issue 6: templates in instructions",
    52: "honesty: a result ceiling that refuses instead of cutting",
    55: "honesty: notes about repeated calls",
    56: "honesty: notes about repeated calls",
    60: "issue 6: typed effects of tools on skills",
    61: "issue 6: teardown of tool sessions",
}

NO_COUNTERPART: dict[int, str] = {
    2: "instructions have no ids: two equal ones are two texts, and the names of folds, bodies and tools are unique",
    20: "typed output is a schema on the request, never a forced tool",
    26: "what a wire cannot carry is a projection issue of its model: tests/models, issue 5",
    29: "a session belongs to its key and owner, not to an agent; who may open one is for a server to check",
    62: "handlers have no progress channel: a live reader sees CallDelta",
}

ELSEWHERE: dict[int, tuple[str, ...]] = {
    151: ("agent/test_declaring.py::test_151_model",),
    155: ("prompt/test_thinking.py::test_l155_",),
    161: ("agent/test_loop_cases.py::test_161_",),
    175: ("honesty/test_self_explain.py::test_175_",),
    181: ("agent/test_declaring.py::test_181_rounds",),
    182: ("honesty/test_commentary.py::test_182_",),
    183: ("honesty/test_commentary.py::test_183_", "honesty/test_status.py::test_183_"),
    184: ("agent/test_declaring.py::test_184_",),
    185: ("turn/test_mounting.py::test_185_",),
    186: ("turn/test_offers.py::test_186_",),
    188: ("turn/test_mounting.py::test_188_a_bundle", "turn/test_mounting.py::test_188_two_tools"),
    189: ("turn/test_typed_output.py::test_189_a_fallback", "turn/test_typed_output.py::test_189_the_canned"),
    190: ("models/test_call_rules.py::test_l190_",),
    191: ("turn/test_moment_tools.py::test_191_",),
    192: (
        "prompt/test_thinking.py::test_l138_l192_",
        "prompt/test_thinking.py::test_l192_a_model",
        "prompt/test_thinking.py::test_l192_models",
        "prompt/test_thinking.py::test_l192_a_temperature",
    ),
    193: (
        "prompt/test_thinking.py::test_l193_without",
        "prompt/test_thinking.py::test_l193_a_handler",
        "prompt/test_thinking.py::test_l193_with_none",
    ),
}
"""Cases of later sections whose promise the core already keeps."""


@pytest.mark.parametrize("place", sorted({p for held in (COVERED, ELSEWHERE) for ps in held.values() for p in ps}))
def test_each_named_test_exists(place: str) -> None:
    """The table cannot go stale."""
    file, _, name = place.partition("::")
    assert re.search(rf"^(async )?def {name}", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_no_case_stands_in_two_columns() -> None:
    """Covered, later, or without a counterpart."""
    columns = [*COVERED, *LATER, *NO_COUNTERPART]
    assert len(columns) == len(set(columns))


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_stands_in_the_table_with_all_its_cases(section: str) -> None:
    """Counted, so that a case cannot fall out of the table where the specification is not at hand."""
    first, last, count = SECTIONS[section]
    ids = sorted(one for one in {*COVERED, *LATER, *NO_COUNTERPART} if first <= one <= last)
    assert (ids[0], ids[-1], len(ids)) == (first, last, count)


def test_every_case_of_these_sections_stands_in_the_table() -> None:
    """Compared with the specification itself, where that folder is at hand."""
    if not CASES.exists():
        pytest.skip("no cases: set ONRECORD_SHARED to the folder that has spec/loop-cases.md in it")
    section, ids = "", set[int]()
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if head := re.match(r"## ([A-Z])\. ", line):
            section = head[1]
        elif (case := re.match(r"(\d+)\. \*\*", line)) and section in SECTIONS:
            ids.add(int(case[1]))
    assert ids == {*COVERED, *LATER, *NO_COUNTERPART}
