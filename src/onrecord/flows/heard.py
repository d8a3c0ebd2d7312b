"""What a model says it heard: values that fit their fields, and those that do not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from onrecord.flows.fields import Dropped, coerce_field, is_known
from onrecord.jsonio import Json

if TYPE_CHECKING:
    from onrecord.flows.fields import FieldSpec
    from onrecord.flows.outcomes import OutcomeCode

__all__ = ("heard_values",)


def heard_values(
    raw: Mapping[str, Json], fields: Mapping[str, FieldSpec], offered: Iterable[FieldSpec], data: Mapping[str, Json]
) -> tuple[dict[str, Json], list[tuple[OutcomeCode, str]]]:
    """The patch, and what was dropped: code and field.

    Only what was asked about counts: a model that volunteers a value for another field has guessed. A field that is
    known already is settled, and stays so.
    """
    asked = {spec.slug for spec in offered}
    patch: dict[str, Json] = {}
    dropped: list[tuple[OutcomeCode, str]] = []
    for slug, value in raw.items():
        if value is None or is_known(data.get(slug)):
            continue
        spec = fields.get(slug)
        if spec is None:
            dropped.append(("unknown-field", slug))
            continue
        if slug not in asked:
            continue
        got = coerce_field(spec, value)
        if isinstance(got, Dropped):
            dropped.append((got.code, slug))
        elif is_known(got):
            patch[slug] = got
    return patch, dropped
