"""Checks JSON against a JSON Schema and says everything that is wrong with it, without quoting a value.

The checks are our own and not those of jsonschema-rs: its messages quote the offending value, and the model must read
the same words whether an extra is installed or not. It serves as the oracle of the tests instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onrecord.jsonio import Json
from onrecord.tools.issues import Issue, listed, type_name
from onrecord.tools.keywords import Check, Compiler, Found

__all__ = ("argument_problems", "compiled")


def argument_problems(schema: Mapping[str, Json]) -> Callable[[Mapping[str, Json]], str]:
    """Compiles a schema into the function that names all problems of a call's arguments, or returns ``""``.

    At most ten are named, each with its path, what is expected, and the type of what came. See `keywords` for the
    subset of JSON Schema that is checked. Neither this nor the function raises, whatever the schema or the arguments.
    """
    check = compiled(schema)

    def problems(args: Mapping[str, Json]) -> str:
        found = check(args)
        return listed(found, "arguments") if found else ""

    return problems


def compiled(schema: Json, root: Json = None) -> Check:
    """A check of a whole value against ``schema``; its references point into ``root``, or into itself."""
    inner = Compiler(schema if root is None else root).check(schema)

    def check(value: Json) -> Found:
        try:
            return inner(value)
        except RecursionError:
            return [Issue((), "a value that is nested less deeply", type_name(value))]

    return check
