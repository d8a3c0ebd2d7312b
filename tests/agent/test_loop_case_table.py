"""Where each case of ``spec/loop-cases.md`` stands, and what is left to which later issue.

``COVERED`` names the tests. ``LATER`` names what a case is about and is not built: *honesty* is the layers that no
issue is filed for yet. ``NO_COUNTERPART`` says why a case has nothing to hold on to here.
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
    "E": (64, 65, 2),
    "F": (73, 80, 6),
    "G": (81, 93, 8),
    "H": (95, 98, 4),
    "I": (99, 111, 11),
    "J": (112, 120, 6),
    "K": (121, 131, 9),
    "L": (132, 139, 6),
    "M": (140, 147, 7),
    "N": (151, 180, 23),
    "O": (181, 194, 14),
}
"""The sections' first and last case, and how many there are: numbers are left out in between."""

COVERED: dict[int, tuple[str, ...]] = {
    1: ("agent/test_declaring.py::test_a1_",),
    2: ("turn/test_bundles.py::test_188_two_instructions",),
    3: ("agent/test_loop_cases.py::test_a3_a4_",),
    4: (
        "agent/test_loop_cases.py::test_a3_a4_",
        "turn/test_typed_output.py::test_a19_a_fallback",
        "prompt/test_thinking.py::test_a4_thinking",
    ),
    5: ("turn/test_moment_request.py::test_a5_", "prompt/test_window_cases.py::test_a5_"),
    7: ("agent/test_declaring.py::test_a7_",),
    8: ("agent/test_declaring.py::test_a7_",),
    9: ("agent/test_declaring.py::test_a9_",),
    10: ("honesty/test_self_explain.py::test_a10_",),
    11: ("turn/test_settle_and_watch.py::test_a11_",),
    12: ("governance/test_check_in.py::test_a12_",),
    13: ("governance/test_check_in.py::test_a13_",),
    15: ("agent/test_declaring.py::test_a15_",),
    16: ("prompt/test_window_cases.py::test_a16_",),
    17: ("skills/test_checkup.py::test_a17_",),
    19: ("turn/test_typed_output.py::test_a19_a_fallback", "turn/test_typed_output.py::test_a19_a_canned"),
    22: ("agent/test_loop_cases.py::test_a22_",),
    23: ("turn/test_instructions.py::test_a23_",),
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
    61: (
        "host/test_toolsets_left.py::test_d61_what",
        "host/test_toolsets_left.py::test_d61_a_paused",
        "host/test_toolsets_left.py::test_d61_one",
    ),
    62: ("turn/test_progress.py::test_d62_",),
    64: ("governance/test_permissions.py::test_e64_",),
    65: ("governance/test_permissions.py::test_e65_",),
    73: ("turn/test_moment_tools.py::test_f73_",),
    76: ("turn/test_moment_input.py::test_f76_",),
    77: ("turn/test_moment_input.py::test_f77_",),
    78: ("turn/test_moment_output.py::test_f78_nothing", "turn/test_moment_output.py::test_f78_a_rule"),
    79: ("turn/test_moment_output.py::test_f79_", "agent/test_loop_cases.py::test_f79_"),
    80: ("turn/test_moment_input.py::test_f80_",),
    81: ("governance/test_collect.py::test_g81_", "host/test_cases.py::test_g81_"),
    82: (
        "governance/test_collect.py::test_g82_",
        "host/test_cases.py::test_g82_",
        "host/test_killed_while_waiting.py::test_g82_",
    ),
    83: ("governance/test_collect.py::test_g83_",),
    85: ("governance/test_check_in.py::test_g85_",),
    86: ("governance/test_check_in.py::test_g86_",),
    87: ("governance/test_check_in.py::test_g87_",),
    91: ("governance/test_credentials.py::test_g91_",),
    93: ("governance/test_collect.py::test_g93_",),
    95: ("agent/test_loop_cases.py::test_h95_",),
    96: ("agent/test_loop_cases.py::test_h96_",),
    97: ("agent/test_loop_cases.py::test_h97_",),
    98: ("governance/test_budget.py::test_h98_each", "governance/test_budget.py::test_h98_a_turn"),
    99: ("prompt/test_window_cases.py::test_i99_",),
    101: ("prompt/test_window_cases.py::test_i101_", "prompt/test_window_cases.py::test_i100_"),
    102: ("prompt/test_window_cases.py::test_i102_",),
    103: ("prompt/test_window_cases.py::test_i103_",),
    104: ("prompt/test_window_cases.py::test_i104_",),
    105: ("prompt/test_window_cases.py::test_i105_",),
    106: ("prompt/test_window_cases.py::test_i106_", "prompt/test_window_cases.py::test_i107_"),
    108: ("prompt/test_window_summaries.py::test_i108_",),
    109: ("prompt/test_window_summaries.py::test_i109_",),
    110: ("prompt/test_window_summaries.py::test_i110_",),
    111: ("prompt/test_window_cases.py::test_i111_a_window", "prompt/test_window_cases.py::test_i111_no_room"),
    112: ("turn/test_instructions.py::test_j112_",),
    113: ("turn/test_instructions.py::test_j113_",),
    114: ("turn/test_instructions.py::test_j114_",),
    118: ("skills/test_checkup.py::test_118_",),
    119: (
        "skills/test_procedures.py::test_119_one",
        "skills/test_procedures.py::test_119_a_step",
        "skills/test_procedures.py::test_119_an_early",
    ),
    120: ("turn/test_instructions.py::test_j120_",),
    121: ("skills/test_graph.py::test_121_",),
    122: ("skills/test_graph.py::test_122_",),
    123: ("skills/test_graph.py::test_123_",),
    124: ("skills/test_graph.py::test_124_",),
    125: ("skills/test_graph.py::test_125_",),
    126: (
        "skills/test_graph.py::test_126_under_guard_only",
        "skills/test_graph.py::test_126_under_guard_without",
        "skills/test_graph.py::test_126_under_rails",
    ),
    127: ("skills/test_graph_start.py::test_127_",),
    129: ("skills/test_diagram.py::test_129_",),
    131: ("skills/test_graph.py::test_131_",),
    132: ("turn/test_typed_output.py::test_132_",),
    134: ("turn/test_typed_output.py::test_134_",),
    136: ("models/test_call_rules.py::test_l136_",),
    137: ("models/test_breaker.py::test_l137_",),
    138: ("prompt/test_thinking.py::test_l138_a_budget", "prompt/test_thinking.py::test_l138_l192_"),
    139: ("prompt/test_cache_marks.py::test_l139_the_mark", "prompt/test_cache_marks.py::test_l139_the_card"),
    140: ("memory/test_memory.py::test_m140_messages", "memory/test_memory.py::test_m140_a_turn"),
    141: ("memory/test_memory.py::test_m141_what", "memory/test_memory.py::test_m141_nobody"),
    142: (
        "memory/test_retrieve.py::test_m142_retrieval",
        "memory/test_corpus.py::test_m142_",
        "memory/test_retrieve.py::test_m142_vectors",
    ),
    143: ("record/test_receipts.py::test_143_the_digest", "record/test_receipts.py::test_143_a_record"),
    144: ("cli/test_verify.py::test_144_",),
    145: ("cli/test_export.py::test_an_earlier_export", "cli/test_export.py::test_what_is_no_export"),
    147: ("agent/test_composing.py::test_m147_a_branch", "agent/test_composing.py::test_m147_one_that"),
    151: ("agent/test_configuring.py::test_151_model", "agent/test_configuring.py::test_151_a_turn"),
    152: ("prompt/test_prompt_budget.py::test_n152_",),
    153: ("turn/test_instructions.py::test_n153_",),
    154: ("turn/test_receipts.py::test_a_receipt_holds_no_text", "turn/test_receipts.py::test_a_request_is_rebuilt"),
    155: ("prompt/test_thinking.py::test_l155_",),
    157: ("governance/test_permissions.py::test_157_",),
    158: ("skills/test_taking_up.py::test_158_a_hidden", "skills/test_taking_up.py::test_158_a_list"),
    159: (
        "turn/test_settle_and_watch.py::test_an_awaited_watcher_is_waited",
        "turn/test_settle_and_watch.py::test_an_awaited_watcher_sees",
    ),
    161: ("agent/test_loop_cases.py::test_161_", "turn/test_offers.py::test_a_toolset_that_raises"),
    162: (
        "prompt/test_artifacts.py::test_n162_a_long",
        "prompt/test_artifacts.py::test_n162_at_the",
        "prompt/test_artifacts.py::test_n162_a_store",
    ),
    163: ("prompt/test_artifacts.py::test_n163_",),
    164: ("prompt/test_artifact_spending.py::test_n164_",),
    166: (
        "skills/test_taking_up.py::test_166_a_skill",
        "skills/test_taking_up.py::test_166_a_name",
        "skills/test_graph.py::test_166_",
    ),
    170: ("host/test_cases.py::test_170_",),
    171: ("host/test_cases.py::test_171_",),
    174: ("mcp_bridge/test_governed.py::test_174_", "mcp_bridge/test_results.py::test_174_"),
    175: ("honesty/test_self_explain.py::test_175_",),
    177: (
        "turn/test_typed_output.py::test_a_turn_that_ended_without",
        "turn/test_typed_output.py::test_a_plain_agents",
    ),
    179: ("memory/test_retrieve.py::test_m179_",),
    180: ("memory/test_memory.py::test_n180_",),
    181: ("agent/test_declaring.py::test_181_rounds", "agent/test_declaring.py::test_181_the_last"),
    182: ("honesty/test_commentary.py::test_182_",),
    183: ("honesty/test_commentary.py::test_183_", "honesty/test_status.py::test_183_"),
    184: ("agent/test_declaring.py::test_184_", "turn/test_bundles.py::test_188_two_instructions"),
    185: ("turn/test_mounting.py::test_185_", "skills/test_taking_up.py::test_185_"),
    186: ("turn/test_offers.py::test_186_", "skills/test_taking_up.py::test_186_scoped"),
    187: (
        "skills/test_engagement.py::test_187_a_guess",
        "skills/test_engagement.py::test_187_asking",
        "skills/test_engagement.py::test_187_a_call",
        "skills/test_engagement.py::test_187_there",
    ),
    188: (
        "turn/test_mounting.py::test_188_a_bundle",
        "turn/test_mounting.py::test_188_two_tools",
        "turn/test_mounting.py::test_188_there",
        "turn/test_bundles.py::test_188_a_turn",
    ),
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
    194: (
        "skills/test_graph_shapes.py::test_194_a_graph",
        "skills/test_graph_shapes.py::test_194_such",
        "skills/test_checkup.py::test_194_",
    ),
}
"""Case to tests, as ``file::beginning of a name`` below ``tests/``."""

LATER: dict[int, str] = {
    52: "honesty: a result ceiling that refuses instead of cutting",
    55: "honesty: notes about repeated calls",
    56: "honesty: notes about repeated calls",
    173: "the server: agents as MCP servers",
}

NO_COUNTERPART: dict[int, str] = {
    20: "typed output is a schema on the request, never a forced tool",
    26: "what a wire cannot carry is a projection issue of its model: tests/models, issue 5",
    29: "a session belongs to its key and owner, not to an agent; who may open one is for a server to check",
    60: "instructions have no ids to lease; a tool proposes a skill, for one request: skills/test_graph.py",
    168: "there is one form of loop",
    172: "a host serves whoever calls it; owners are checked by the server, which is a later issue",
}


@pytest.mark.parametrize("place", sorted({place for places in COVERED.values() for place in places}))
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


def test_every_case_stands_in_the_table() -> None:
    """Compared with the specification itself, where that folder is at hand."""
    if not CASES.exists():
        pytest.skip("no cases: set ONRECORD_SHARED to the folder that has spec/loop-cases.md in it")
    text = CASES.read_text(encoding="utf-8")
    assert {int(case) for case in re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE)} == {
        *COVERED,
        *LATER,
        *NO_COUNTERPART,
    }
