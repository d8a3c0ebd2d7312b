"""Flows that come from anywhere: whatever they are, they are read or refused, and nothing else happens."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.errors import FlowInvalid
from onrecord.flows.flow import Flow
from onrecord.flows.flow_json import from_spec, to_spec
from onrecord.flows.validate import validate_flow
from onrecord.jsonio import Json
from tests.flows.declared import EVERYTHING, KNOWN, PROMPT, spec
from tests.flows.drawing import flows, junk

pytestmark = pytest.mark.unit


def places(value: Json, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path]
    if isinstance(value, dict):
        found += [place for name, item in value.items() for place in places(item, (*path, name))]
    if isinstance(value, list):
        found += [place for at, item in enumerate(value) for place in places(item, (*path, at))]
    return found


def put(value: Json, path: tuple[Any, ...], other: Any) -> Json:
    """The value with another one at a place."""
    if not path:
        return other
    first, *rest = path
    if isinstance(value, dict):
        return {**value, first: put(value[first], tuple(rest), other)}
    return [put(item, tuple(rest), other) if at == first else item for at, item in enumerate(value)]


def read(told: Any) -> Flow | None:
    """The flow that JSON is, or None where it is refused."""
    with suppress(FlowInvalid):
        return from_spec(told)
    return None


def read_or_refused(told: Any) -> None:
    """Reads it if it is a flow; then it can be checked, and written without any error."""
    flow = read(told)
    if flow is not None:
        with suppress(FlowInvalid):
            validate_flow(flow, KNOWN)
        assert from_spec(to_spec(flow)) == flow


@given(junk | st.dictionaries(st.sampled_from(sorted(EVERYTHING)), junk))
def test_anything_at_all_is_read_or_refused(told: Any) -> None:
    """Q18: nothing but FlowInvalid is raised."""
    read_or_refused(told)


@given(st.sampled_from(places(EVERYTHING)), junk)
def test_a_flow_with_one_wrong_value_is_read_or_refused(place: tuple[Any, ...], other: Any) -> None:
    """At every place of a flow that has everything."""
    read_or_refused(put(EVERYTHING, place, other))


@given(flows(), st.data())
def test_any_flow_with_a_wrong_value_is_read_or_refused(flow: Flow, data: st.DataObject) -> None:
    """And any flow with an unknown key is refused."""
    told = to_spec(flow)
    read_or_refused(put(told, data.draw(st.sampled_from(places(told))), data.draw(junk)))
    with pytest.raises(FlowInvalid, match='unknown key "odd"'):
        from_spec({**told, "odd": 1})


def nested(levels: int) -> Json:
    """A value of this depth."""
    value: Json = "x"
    for _ in range(levels):
        value = [value]
    return value


def circle() -> Json:
    """A value that contains itself."""
    value: list[Json] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("ui", "told"),
    [
        (nested(60), "nested too deeply"),
        (nested(100_000), "nested too deeply"),
        (circle(), "nested too deeply"),
        ([0] * 200_000, "too large"),
        ({1: "x"}, "an object has a name that must be text, got integer"),
        ({"a": b"x"}, "holds what JSON cannot keep, got bytes"),
        ("\ud800", "holds what JSON cannot keep, got string"),
        ({"\ud800": 1}, "holds what JSON cannot keep, got string"),
        (float("nan"), "holds what JSON cannot keep, got number"),
        (10**30, "holds what JSON cannot keep, got integer"),
        (print, "holds what JSON cannot keep, got builtin_function_or_method"),
    ],
)
def test_what_no_json_could_say_is_refused(ui: Any, told: str) -> None:
    """Even where nobody would read it: a flow that was read can be stored."""
    with pytest.raises(FlowInvalid, match=told):
        from_spec(spec(PROMPT | {"ui": ui}))


def test_a_large_flow_is_read() -> None:
    """The bounds are far from what people write."""
    many = spec(*({"id": f"s{n}", "prompt": "x" * 200, "ui": nested(30)} for n in range(1000)))
    assert len(from_spec(many).steps) == 1000


def test_names_are_quoted_in_short() -> None:
    """A message is for a log line, whatever the name is; control characters are escaped."""
    with pytest.raises(FlowInvalid) as caught:
        from_spec({"id": "f\n\x00" + "x" * 10_000, "steps": 5})
    assert str(caught.value) == 'flow "f\\n\\u0000' + "x" * 57 + '...": steps must be a list, got integer'
