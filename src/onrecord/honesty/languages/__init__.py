"""What is said, by language: one module each, imported when somebody asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Literal

__all__ = ("Language", "words_of")

Language = Literal["en", "pt", "es"]

_MODULES: Mapping[str, str] = {"en": "english", "pt": "portuguese", "es": "spanish"}


def words_of(language: Language) -> ModuleType:
    """The module with a language's templates and words."""
    return import_module(f"{__name__}.{_MODULES[language]}")
