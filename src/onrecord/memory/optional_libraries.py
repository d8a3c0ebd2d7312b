"""Libraries that an extra brings: imported where they are used, and missed in words that say what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from onrecord.errors import MissingDependency

__all__ = ("needed", "numpy_for_vectors")


def needed(module: str, extra: str, what: str) -> Any:
    """The module. MissingDependency, with the command that installs it, where it is not there or does not load."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(f"{what} needs {module!r}, which cannot be imported: {type(error).__name__}",
                                hint=f"pip install 'onrecord[{extra}]'") from None  # fmt: skip


def numpy_for_vectors() -> Any:
    """numpy, for whoever compares vectors. MissingDependency without the extra ``retrieval``."""
    return needed("numpy", "retrieval", "comparing vectors")
