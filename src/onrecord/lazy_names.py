"""Packages whose names are imported where they are first used, so that what nobody uses costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ("lazy_names",)


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562).

    ``homes`` says for each public name in which module below the package it lives. A name is looked up once.
    """
    held = vars(sys.modules[package])

    def look_up(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home}"), name)
        held[name] = value
        return value

    def names() -> list[str]:
        return sorted(held.keys() | homes.keys())

    return look_up, names
