"""How large a history is: the estimate, and its running sums beside the log (spec 30, case R3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.conversation.content import Image, Text
from onrecord.conversation.conversation import Conversation
from onrecord.conversation.log import Log
from onrecord.conversation.messages import ContextMessage, Note, Round, ToolCall, Unit, UserMessage
from onrecord.conversation.transcript import messages_from
from onrecord.models.request import Swap
from onrecord.prompt.window import sizes as sizes_module
from onrecord.prompt.window.sizes import MEDIA_CHARS, Sizes, estimate, sizes_of

pytestmark = pytest.mark.unit


def units_of(records: list[dict[str, Any]]) -> Log[Unit]:
    """The units of a plain history."""
    return Conversation.of(messages_from(records)).units


def called(text: str = "", *results: str, name: str = "look", args: str = "{}") -> Round:
    """A round with a call per result."""
    calls = tuple(
        ToolCall(id=f"c{i}", wire_id=f"w{i}", name=name, raw_args=args, result=(Text(r),), status="returned")
        for i, r in enumerate(results)
    )
    return Round(id="r", content=(Text(text),), calls=calls)


def test_r3_the_estimate_is_a_quarter_of_the_characters() -> None:
    """Four for every item, rounded up; nothing is nothing (case R3)."""
    history = units_of([{"role": "user", "content": "abcd"}, {"role": "assistant", "content": ""}])
    assert estimate(history) == 3
    assert estimate([]) == 0


def test_a_tool_result_is_an_item_with_its_name() -> None:
    """And what the model wrote as arguments is what it wrote."""
    assert estimate([called("abcd", "1234567")]) == (4 + 4 + 2 + 7 + 4 + 4 + 3) // 4


def test_a_call_that_waits_is_no_item() -> None:
    """It is not shown either."""
    asked = ToolCall(id="c", wire_id="w", name="look", raw_args='{"a":1}')
    assert estimate([Round(id="r", calls=(asked,))]) == 1


def test_a_call_without_a_result_counts_what_the_model_reads_of_it() -> None:
    """Words of the library, and its notes."""
    denied = ToolCall(id="c", wire_id="w", name="look", raw_args="", status="not_run", notes=(Note("x", "1234"),))
    said = '{"error":"The call was not run."}'
    assert estimate([Round(id="r", calls=(denied,))]) == -(-(4 + len(said) + len("\n1234") + 4 + 4) // 4)


def test_what_is_no_text_counts_a_thousand_tokens() -> None:
    """However many bytes it has."""
    assert MEDIA_CHARS == 4000
    assert estimate([UserMessage(id="u", content=(Image(data=b"x" * 90_000),))]) == 1001


def test_texts_around_a_round_count() -> None:
    """What stands before it, and corrections behind a draft."""
    around = (ContextMessage(id="x", content=(Text("1234"),)),)
    assert estimate([Round(id="r", before=around, revised=around)]) == 5


# ---- beside the log -----------------------------------------------------------------------------------------------

unit = st.one_of(
    st.text(max_size=9).map(lambda t: UserMessage(id="u", content=(Text(t),))),
    st.text(max_size=9).map(lambda t: ContextMessage(id="x", content=(Text(t),))),
    st.lists(st.text(alphabet="ab \n", max_size=30), max_size=3).map(lambda r: called("so", *r)),
)


@given(st.lists(unit, max_size=12), st.data())
def test_sums_are_those_of_the_units(held: list[Unit], data: st.DataObject) -> None:
    """Wherever they begin, however they grew, and in a log that was cut."""
    log = Log(held)
    start, grown = data.draw(st.integers(0, len(held))), data.draw(st.integers(0, len(held)))
    sizes = sizes_of(log, 10, start)
    sizes.extend(log, grown)
    cut = log.cut(data.draw(st.integers(0, len(held))))
    for one in (log, cut):
        its = sizes_of(one, 10, start)
        its.extend(one, len(one))
        for a in range(min(start, len(one)), len(one) + 1):
            assert its.chars(a, len(one)) == sum(sizes_module._weight(u)[0] for u in one.since(a))


@given(st.lists(unit, min_size=1, max_size=12), st.integers(2, 9))
def test_r6_the_newest_items_begin_with_a_whole_unit(held: list[Unit], keep: int) -> None:
    """As few units as hold that many items: a window never opens on a result without its call (case R6)."""
    log = Log(held)
    sizes = sizes_of(log, 10, 0)
    sizes.extend(log, len(log))
    window = sizes.newest(len(log), keep)
    items = [sizes_module._weight(u)[1] for u in held]
    assert window == 0 or sum(items[window:]) >= keep
    assert sum(items[window + 1 :]) < keep


def test_a_unit_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Growing costs what is new, also behind a cut; only a start further back measures again."""
    measured: list[str] = []
    weigh = sizes_module._weight

    def counting(one: Unit) -> tuple[int, int]:
        measured.append(one.id)
        return weigh(one)

    monkeypatch.setattr(sizes_module, "_weight", counting)
    log: Log[Unit] = Log(UserMessage(id=str(i), content=(Text("x"),)) for i in range(6))
    sizes_of(log, 10, 2).extend(log, 6)
    log = log.cut(4).append(UserMessage(id="new", content=(Text("x"),)))
    sizes_of(log, 10, 3).extend(log, 5)
    assert measured == ["2", "3", "4", "5", "new"]
    assert sizes_of(log, 10, 0).stop == 0


# ---- shorter results ----------------------------------------------------------------------------------------------


def short(held: Unit, limit: int = 10, *, tight: bool = False) -> tuple[list[tuple[int, str]], int]:
    """Which calls of a unit are shown otherwise and how, and what that saves."""
    log = Log([held])
    sizes = Sizes(0, limit)
    sizes.extend(log, 1)
    found = list(sizes.short(log, 0, 1, tight=tight))
    swaps = [swap for some, _ in found for swap in some]
    return [(s.call, "".join(getattr(p, "text", "(media)") for p in s.shows)) for s in swaps], sum(n for _, n in found)


def test_a_long_result_is_cut_and_says_so() -> None:
    """Its beginning, and how long it was; one that fits is left alone."""
    told = "0123456789\n\n[Truncated: 11 chars total, showing first 10]"
    assert short(called("", "01234567890", "0123456789")) == ([(0, told)], 11 - len(told))


def test_white_space_collapses_after_the_cut() -> None:
    """To single spaces, without any around it; a result without any to spare is left alone."""
    held = called("", " a \n\n b\t", "ab c", "012345678901")
    told = "0123456789 [Truncated: 12 chars total, showing first 10]"
    assert short(held, tight=True) == ([(0, "a b"), (2, told)], 5 + 12 - len(told))


def test_a_picture_in_a_result_stays() -> None:
    """Only its words get shorter."""
    result = (Text("01234567890"), Image(url="http://x/y"))
    call = ToolCall(id="c", wire_id="w", name="look", result=result, status="returned")
    assert short(Round(id="r", calls=(call,)))[0] == [
        (0, "0123456789\n\n[Truncated: 11 chars total, showing first 10](media)")
    ]


def test_a_call_that_waits_has_no_result_to_shorten() -> None:
    """The one beside it has."""
    asked = ToolCall(id="c", wire_id="w", name="look")
    held = called("", "01234567890")
    told = "0123456789\n\n[Truncated: 11 chars total, showing first 10]"
    assert short(Round(id="r", calls=(asked, *held.calls)))[0] == [(1, told)]


def test_a_shorter_form_is_made_once() -> None:
    """The same objects each time, so that wire bytes made of them are found again, also in a log that was cut."""
    log: Log[Unit] = Log([called("", "01234567890")] * 2)
    sizes = sizes_of(log, 10, 0)
    sizes.extend(log, 2)

    def first(one: Log[Unit]) -> Swap:
        return next(iter(sizes_of(one, 10, 0).short(one, 0, 1, tight=False)))[0][0]

    assert first(log) is first(log) is first(log.cut(1))
