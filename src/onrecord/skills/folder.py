"""Folders of skills: each folder in one with a ``SKILL.md``, in the public Agent Skills format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.skills.front_matter import FrontValue, read_front_matter
from onrecord.skills.routes import Route
from onrecord.skills.skill import Skill, SkillStep
from onrecord.tools.tool import Tool
from onrecord.tools.toolset import unique_tools

__all__ = ("SkillFolder", "read_skill_folder", "skills_from_folder")

PUBLIC_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
OWN_KEYS = ("tools", "steps", "on-skip", "routes")

MOST_BYTES = 1024 * 1024
"""A ``SKILL.md`` is read by a model: one of more than a megabyte is not one."""

_STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")  # no text has these, and not every store takes them

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class SkillFolder(Struct, frozen=True, kw_only=True):
    """What a folder of skills says: the skills by name, and the routes that their files declare between them."""

    skills: tuple[Skill, ...]
    routes: tuple[Route, ...] = ()


@declared
def skills_from_folder(folder: str | Path, tools: Iterable[Tool] = ()) -> tuple[Skill, ...]:
    """The skills of a folder, by name: `read_skill_folder` without the routes."""
    return read_skill_folder(folder, tools).skills


@declared
def read_skill_folder(folder: str | Path, tools: Iterable[Tool] = ()) -> SkillFolder:
    """Reads ``<folder>/<name>/SKILL.md`` of every folder that has one.

    The front matter has the keys of the public format (``name``, which is the folder's, ``description``, ``license``,
    ``compatibility``, ``metadata``, ``allowed-tools``) and four of our own: ``tools`` names the skill's tools among
    those given, ``steps`` is a list of ``tool: note``, ``on-skip`` is ``advance`` or ``hold``, ``routes`` a list of
    skills that the model may go on to. ``allowed-tools`` is checked for its form and grants nothing. Files beside
    ``SKILL.md`` are not run, and not read here (see `skill_files`). ConfigurationError names the file and the key: an
    unknown key, an unknown tool, a name that is not the folder's, a text that is too long or missing, a link that
    leads outside.
    """
    root = Path(folder)
    if not root.is_dir():
        raise _invalid(str(root), "there is no such folder")
    known = {tool.id: tool for tool in unique_tools(tuple(tools))}
    found = [_one(path, root, known) for path in sorted(root.iterdir()) if _has_skill(path)]
    if not found:
        raise _invalid(root.name, "no folder in it has a SKILL.md", hint="put each skill in a folder named after it")
    skills = tuple(skill for skill, _ in found)
    ids = {skill.id for skill in skills}
    routes: list[Route] = []
    for skill, targets in found:
        for target in targets:
            if target not in ids:
                raise _invalid(f"{skill.id}/SKILL.md", f"routes names {target!r}, which is no skill of this folder")
            routes.append(Route(skill.id, target))
    return SkillFolder(skills=skills, routes=tuple(routes))


def _invalid(where: str, told: str, hint: str = "") -> ConfigurationError:
    return ConfigurationError(f"{where}: {told}", code="skill-invalid", hint=hint)


def _has_skill(path: Path) -> bool:
    """Whether a folder has a ``SKILL.md``. One in other letters is refused: it is found on some systems only."""
    if not path.is_dir():
        return False
    named = [file.name for file in path.iterdir() if file.name.lower() == "skill.md"]
    for name in named:
        if name != "SKILL.md":
            raise _invalid(f"{path.name}/{name}", "its name is not written 'SKILL.md'", hint="rename it")
    return bool(named) and (path / "SKILL.md").is_file()


def _one(path: Path, root: Path, tools: Mapping[str, Tool]) -> tuple[Skill, list[str]]:
    where = f"{path.name}/SKILL.md"
    file = path / "SKILL.md"
    if not file.resolve().is_relative_to(root.resolve()):
        raise _invalid(where, "it is a link to a file outside of the folder", hint="copy the file here")
    if file.stat().st_size > MOST_BYTES:
        raise _invalid(where, f"it is larger than {MOST_BYTES} bytes")
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise _invalid(where, "it is not UTF-8") from None
    except OSError as error:
        raise _invalid(where, f"it cannot be read: {type(error).__name__}") from None
    held, body = read_front_matter(text, where)
    if strange := _STRANGE.search(body):
        raise _invalid(where, f"its text has the control character U+{ord(strange[0]):04X}")
    for key in held:
        if key not in PUBLIC_KEYS and key not in OWN_KEYS:
            raise _invalid(
                where, f"unknown key {key!r}",
                hint=f"known are {', '.join((*PUBLIC_KEYS, *OWN_KEYS))}; anything else goes below metadata",
            )  # fmt: skip
    name = _text(held, "name", where, most=64)
    if not _NAME.fullmatch(name):
        raise _invalid(where, f"the name {name!r} is not lower-case letters, digits and single hyphens between them")
    if name != path.name:
        raise _invalid(where, f"the name {name!r} is not that of its folder", hint=f"rename one of them: {path.name!r}")
    _check_optional(held, where)
    if not body.strip():
        raise _invalid(where, "there are no instructions below the front matter")
    on_skip = held.get("on-skip")
    if on_skip not in (None, "advance", "hold"):  # no set: what a file says may be a list
        raise _invalid(where, "on-skip is 'advance' or 'hold'")
    skill = Skill(
        name, _text(held, "description", where, most=1024), body, tools=_tools(held, where, tools),
        steps=_steps(held, where), on_skip=on_skip,  # type: ignore[arg-type] # one of the two words
    )  # fmt: skip
    return skill, _texts(held, "routes", where)


def _text(held: Mapping[str, FrontValue], key: str, where: str, *, most: int) -> str:
    value = held.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _invalid(where, f"{key} is missing" if key not in held else f"{key} is not a text")
    value = value.strip()
    if len(value) > most:
        raise _invalid(where, f"{key} has {len(value)} characters, at most {most}")
    return value


def _check_optional(held: Mapping[str, FrontValue], where: str) -> None:
    if "compatibility" in held:
        _text(held, "compatibility", where, most=500)
    if "license" in held:
        _text(held, "license", where, most=1024)
    allowed = held.get("allowed-tools", "")
    if not isinstance(allowed, (str, list)) or not all(isinstance(one, str) for one in allowed):
        raise _invalid(where, "allowed-tools is one text, with spaces between the names, or a list of them")
    if "metadata" in held and not isinstance(held["metadata"], dict):
        raise _invalid(where, "metadata is a mapping of texts")


def _texts(held: Mapping[str, FrontValue], key: str, where: str) -> list[str]:
    value = held.get(key, [])
    texts: Sequence[object] = [value] if isinstance(value, str) and value else value if isinstance(value, list) else ()
    named = [one for one in texts if isinstance(one, str)]
    if key in held and (not named or len(named) != len(texts)):
        raise _invalid(where, f"{key} is a list of names")
    if len(set(named)) != len(named):
        twice = next(one for one in named if named.count(one) > 1)
        raise _invalid(where, f"{key} names {twice!r} twice")
    return named


def _tools(held: Mapping[str, FrontValue], where: str, known: Mapping[str, Tool]) -> tuple[Tool, ...]:
    named = _texts(held, "tools", where)
    for tool in named:
        if tool not in known:
            raise _invalid(
                where, f"tools names {tool!r}, which was not given",
                hint=f"given are {', '.join(sorted(known)) or 'none'}: skills_from_folder(folder, tools=[...])",
            )  # fmt: skip
    return tuple(known[tool] for tool in named)


def _steps(held: Mapping[str, FrontValue], where: str) -> tuple[SkillStep, ...] | None:
    if "steps" not in held:
        return None
    value = held["steps"]
    pairs: list[tuple[str, str]] = []
    for one in value if isinstance(value, list) else ():
        pairs += one.items() if isinstance(one, dict) else ()
    if not pairs or not isinstance(value, list) or len(pairs) != len(value):
        raise _invalid(where, "steps is a list of 'tool: note'")
    return tuple(SkillStep(tool, note) for tool, note in pairs)
