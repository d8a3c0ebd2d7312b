"""``MODULE:AGENT``: the agent that a command line names, from an importable module or from a file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from onrecord.agent import Agent
from onrecord.cli.failure import Wrong, meant
from onrecord.errors import OnrecordError
from onrecord.host import Host

__all__ = ("ModuleFailed", "agent_named", "function_named", "served_named")

FORM = "write MODULE:AGENT, such as examples/hotel.py:agent or my_package.agents:concierge"


class ModuleFailed(OnrecordError):
    """The user's module raised while it was imported, or its function while it made the agent."""

    default_code = "module-failed"


def agent_named(name: str, *, model: str | None = None) -> Agent[Any, Any]:
    """The agent, with another model where one is named. Wrong, ModuleFailed, ConfigurationError."""
    found, where, attribute = _named(name)
    if not isinstance(found, Agent):
        raise Wrong(f"{where}:{attribute} is no agent but {_kind(found)}", hint=_offer(where, _agents_of(where)))
    return found.with_(model=model) if model is not None else found


def served_named(name: str) -> Agent[Any, Any] | Host[Any, Any]:
    """The agent, or the host that has one. Wrong, ModuleFailed."""
    found, where, attribute = _named(name)
    if not isinstance(found, (Agent, Host)):
        told = f"{where}:{attribute} is neither an agent nor a host but {_kind(found)}"
        raise Wrong(told, hint=_offer(where, _agents_of(where)))
    return found


def function_named(name: str, option: str) -> Callable[..., Awaitable[Any]]:
    """The async function that an option names. Wrong, ModuleFailed."""
    where, colon, attribute = name.rpartition(":")
    if not colon or not where or not attribute:
        raise Wrong(f"{option} {name!r} names no function", hint="write MODULE:FUNCTION, such as my_app.channel:send")
    found: Any = _loaded(where)
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise Wrong(f"{where!r} has no {attribute!r}", hint=f"{option} wants an async function there")
    called = found if inspect.isroutine(found) else getattr(found, "__call__", None)  # noqa: B004 - its kind is asked
    if not inspect.iscoroutinefunction(called):
        raise Wrong(f"{where}:{attribute} is no async function but {_kind(found)}", hint="declare it with async def")
    function: Callable[..., Awaitable[Any]] = found
    return function


def _named(name: str) -> tuple[object, str, str]:
    """What a name leads to, made where it is a function, with its parts."""
    where, colon, attribute = name.rpartition(":")
    if where and colon and not attribute:
        raise Wrong(f"{name!r} names nothing behind its colon", hint=FORM)
    if not where or not attribute or (len(where) == 1 and attribute.startswith(("/", "\\"))):
        where, attribute = name, ""  # no colon, or the one of a drive letter
    return _found(_loaded(where), where, attribute)


_modules = dict[str, ModuleType]()
"""Files that were loaded, so that options that name one share its objects; those of names Python keeps itself."""


def _loaded(where: str) -> ModuleType:
    if not _is_path(where):
        return _from_name(where)
    file = str(Path(where).resolve())
    if file not in _modules:
        _modules[file] = _from_file(where)
    return _modules[file]


def _agents_of(where: str) -> list[str]:
    return [name for name, value in vars(_loaded(where)).items() if isinstance(value, Agent)]


def _kind(found: object) -> str:
    return "a class" if isinstance(found, type) else f"of type {type(found).__name__}"


def _is_path(where: str) -> bool:
    return where.endswith(".py") or "/" in where or "\\" in where


def _from_file(where: str) -> ModuleType:
    path = Path(where)
    if path.is_dir():
        raise Wrong(f"{where!r} is a folder", hint=FORM)
    if not path.is_file():
        near = [str(one) for one in sorted(path.parent.glob("*.py")) if one.is_file()]
        told = f"{where!r} is a link that leads nowhere" if path.is_symlink() else f"there is no file {where!r}"
        raise Wrong(told, hint=meant(str(path), near, otherwise=FORM))
    if path.suffix != ".py":
        raise Wrong(f"{where!r} is no Python file", hint=FORM)
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # what lies beside the file can be imported by it
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"onrecord_chat_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Wrong(f"{where!r} cannot be loaded as a Python file", hint=FORM)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations of dataclasses and structs are looked up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _failed(where, error) from error
    return module


def _from_name(where: str) -> ModuleType:
    if "" not in sys.path:
        sys.path.insert(0, "")  # the folder one stands in, as `python -m` has it
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if where == missing or where.startswith(f"{missing}."):
            if Path(where).is_file():
                raise Wrong(f"{where!r} is no Python file", hint=FORM) from error
            hint = (
                f"did you mean {where}.py? A file is named with its suffix" if Path(f"{where}.py").is_file() else FORM
            )
            raise Wrong(f"there is no module {where!r}", hint=hint) from error
        raise _failed(where, error) from error
    except (TypeError, ValueError) as error:
        if not all(part.isidentifier() for part in where.split(".")):
            raise Wrong(f"{where!r} names no module", hint=FORM) from error
        raise _failed(where, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(where, error) from error


def _failed(where: str, error: BaseException, did: str = "cannot be imported:") -> OnrecordError:
    """What the module itself raised. Errors of this library keep their own words and hint."""
    if isinstance(error, OnrecordError):
        return ModuleFailed(f"{where!r}: {error}", code=error.code, hint=error.hint or "--debug shows where")
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        what = f"{type(error).__name__}: {error.msg}"
        at = f" ({Path(error.filename or where).name}, line {error.lineno})"
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
        at = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if len(frames) > 1 else ""
    hint = "--debug shows where"
    if isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"install what it needs (module {error.name!r}), or start where it can be found; --debug shows where"
    return ModuleFailed(f"{where!r} {did} {what}{at}", hint=hint)


def _found(module: ModuleType, where: str, attribute: str) -> tuple[object, str, str]:
    agents = _agents_of(where)
    if not attribute:
        if len(agents) != 1 and not hasattr(module, "agent"):
            raise Wrong(f"which agent of {where!r} is not said", hint=_offer(where, agents))
        attribute = "agent" if hasattr(module, "agent") else agents[0]
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
        if found is None:
            close = get_close_matches(attribute, [*agents, *vars(module)], n=1)
            hint = f"did you mean {where}:{close[0]}?" if close else _offer(where, agents)
            raise Wrong(f"{where!r} has no {attribute!r}", hint=hint)
    if inspect.isroutine(found) or isinstance(found, partial):  # not a rule or a tool, which can be called as well
        found = _made(found, where, attribute)
    return found, where, attribute


def _made(make: Any, where: str, attribute: str) -> object:
    """What a function without arguments returns."""
    try:
        inspect.signature(make).bind()
    except (TypeError, ValueError) as error:
        told = f"{where}:{attribute} is no agent, and it cannot be called without arguments"
        raise Wrong(told, hint="name an Agent, or a function without arguments that returns one") from error
    try:
        made: object = make()
    except (Exception, SystemExit) as error:
        raise _failed(f"{where}:{attribute}", error, "raised") from error
    if inspect.iscoroutine(made):
        made.close()
        raise Wrong(
            f"{where}:{attribute} is an async function", hint="name an Agent, or a plain function returning one"
        )
    return made


def _offer(where: str, agents: list[str]) -> str:
    return f"agents there: {', '.join(f'{where}:{name}' for name in agents)}" if agents else FORM
