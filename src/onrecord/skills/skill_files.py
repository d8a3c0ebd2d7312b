"""Files beside a ``SKILL.md``: what its instructions refer to, for the model to read when it comes to that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.jsonio import Json
from onrecord.tools.tool import Tool

__all__ = ("skill_files",)

READ_SKILL_FILE = "read_skill_file"

MOST_BYTES = 64 * 1024
"""What a model reads at once is a chapter, not a book."""

MOST_NAMED = 20


@declared
def skill_files(folder: str | Path) -> Tool:
    """A tool ``read_skill_file`` for the text files of a folder of skills: ``Agent(tools=[skill_files("skills")])``.

    Instructions in the public format refer to files by their path from the skill's folder, such as
    ``references/guide.md``. The tool reads those, as UTF-8 text of up to 64 KB, and runs nothing. Whatever leads out of
    the skill's folder is refused, by ``..`` or by a link, and so are hidden files. It reads for whoever may call it:
    what not everybody may see belongs elsewhere. ConfigurationError for a folder without skills.
    """
    root = Path(folder)
    held = {path.name: path for path in sorted(root.iterdir()) if _is_skill(path, root)} if root.is_dir() else {}
    if not root.is_dir():
        raise ConfigurationError(f"{root}: there is no such folder", code="skill-invalid")
    if not held:
        raise ConfigurationError(
            f"{root.name}: no folder in it has a SKILL.md", code="skill-invalid",
            hint="put each skill in a folder named after it",
        )  # fmt: skip

    def handler(args: Mapping[str, Json], ctx: Any) -> str:
        return _read(held[args["skill"]], str(args["path"]))

    return Tool(
        READ_SKILL_FILE, handler,
        "Reads a file that the instructions of a skill refer to, by its path from the folder of that skill.",
        parameters={
            "type": "object",
            "properties": {
                "skill": {"type": "string", "description": "The skill's id.", "enum": list(held)},
                "path": {"type": "string", "description": "Such as references/guide.md."},
            },
            "required": ["skill", "path"],
            "additionalProperties": False,
        },
        read_only=True, check_arguments=True,
    )  # fmt: skip


def _is_skill(path: Path, root: Path) -> bool:
    return (path / "SKILL.md").is_file() and path.resolve().is_relative_to(root.resolve())


def _read(folder: Path, path: str) -> str:
    named = PurePosixPath(path)
    inside = _inside(folder, named) if path.isprintable() and "\\" not in path else None
    if inside is None:
        files = ", ".join(_files(folder)) or "none"
        raise LookupError(f"the skill {folder.name!r} has no file {path[:200]!r}; its files are: {files}")
    try:
        if inside.stat().st_size > MOST_BYTES:
            raise ValueError(f"the file {path!r} is larger than {MOST_BYTES} bytes")
        return inside.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"the file {path!r} is not a text") from None
    except OSError as error:  # what it says has the whole path
        raise ValueError(f"the file {path!r} cannot be read: {type(error).__name__}") from None


def _inside(folder: Path, named: PurePosixPath) -> Path | None:
    """The file with this path, unless it leads out of the folder or is hidden."""
    if named.is_absolute() or any(part.startswith(".") for part in named.parts):
        return None
    root = folder.resolve()
    try:
        found = root.joinpath(*named.parts).resolve()
        return found if found.is_relative_to(root) and found.is_file() else None
    except (OSError, RuntimeError):  # too long a name, or links in a circle: the error would tell the whole path
        return None


def _files(folder: Path) -> Iterator[str]:
    """Some of the files that can be read, by path."""
    named = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    readable = [path for path in named if path != "SKILL.md" and _inside(folder, PurePosixPath(path)) is not None]
    yield from readable[:MOST_NAMED]
    if len(readable) > MOST_NAMED:
        yield "…"
