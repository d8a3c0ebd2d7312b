"""Commentary: entries as sentences for people, in templates that can be replaced or translated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from onrecord.declared import declared
from onrecord.errors import ConfigurationError
from onrecord.honesty.languages import Language, words_of
from onrecord.honesty.status import StatusLine, StatusTemplates
from onrecord.honesty.templates import Teller, refused
from onrecord.record.entry import Body, Entry
from onrecord.tools.tool import Tool
from onrecord.turn.agent_spec import AgentSpec
from onrecord.turn.moments import Hooks, Watch

__all__ = ("Commentary", "Language")


@declared
class Commentary:
    """Tells of entries in sentences, and in the first person what an agent is doing right now.

    ``app`` is the name that ``{{app_name}}`` stands for. ``language`` chooses the templates shipped: ``en``, ``pt`` or
    ``es``. ``templates`` replaces some of them: the key is the kind of entry, with a part behind it where several
    things are said of a kind (``tool.returned.failed``); an empty text says nothing. ``status`` replaces templates of
    the status: ``idle``, ``streaming``, ``tool``, ``tool.NAME`` for one tool, ``tool.progress`` and
    ``tool.progress.generic`` for what a tool tells with `ToolContext.progress`, with words and without, ``paused``,
    and ``paused.elsewhere`` for a question to somebody else. ``bodies`` are kinds of entries of your own to tell of;
    their facts are their fields.

    What is shipped shows no content: no words of people or models, no arguments, no results. A template shows what it
    names, cut to 120 characters; ``{{args.NAME}}`` is one argument of a call.

    It is used without an agent, on entries that are there; or as a feature, ``features=[Commentary(tell=...)]``, which
    calls ``tell(sentence, entry)`` as entries are filed. ConfigurationError for a language, a key or a fact that there
    is not, with the nearest one; as a feature also without ``tell``, and for a status of a tool that the agent lacks.
    """

    def __init__(
        self, *, app: str = "Chatbot", templates: Mapping[str, str] | None = None,
        status: Mapping[str, str] | None = None, language: Language = "en", bodies: Iterable[type[Body]] = (),
        tell: Callable[[str, Entry], Any] | None = None,
    ) -> None:  # fmt: skip
        if language not in get_args(Language):
            raise refused(f"there is no commentary in {language!r}", language, get_args(Language))
        if not app.strip():
            raise ConfigurationError("app= is the name that people know the agent by, and not blank")
        words = words_of(language)
        own = tuple(bodies)
        known = {**dict.fromkeys((str(body.__struct_config__.tag) for body in own), ""), **words.TEMPLATES}
        for key in templates or ():
            if key not in known:
                raise refused(f"there is no template {key!r}", key, known)
        self._teller = Teller({**known, **(templates or {})}, words.WORDS, app=app, bodies=own)
        self._status = StatusTemplates({**words.STATUS, **(status or {})}, app=app)
        self._tell = tell

    @property
    def name(self) -> str:
        """The feature's name."""
        return "commentary"

    def sentence(self, entry: Entry) -> str:
        """What is said of one entry, whatever stood before it; empty where nothing is."""
        return self._teller.told(entry.body)

    def sentences(self, entries: Iterable[Entry]) -> Iterator[str]:
        """What is said of entries, in order: of a turn's result, of a stored record, of entries as they come."""
        for entry in entries:
            if told := self._teller.told(entry.body):
                yield told

    def follow(self) -> StatusLine:
        """A status for one session: show it the session's entries, and deltas, as they come."""
        return StatusLine(self._status)

    def hooks(self, spec: AgentSpec) -> Hooks:
        if self._tell is None:
            raise ConfigurationError(
                "nobody is told what this Commentary says",
                hint="Commentary(tell=lambda sentence, entry: print(sentence)), or sentences(entries) without an agent",
            )
        return Hooks(watch=(Watch(self._see, name=self.name),), built=self._check_tools)

    def _see(self, entry: Entry) -> None:
        if self._tell is not None and (told := self._teller.told(entry.body)):
            self._tell(told, entry)

    def _check_tools(self, tools: Mapping[str, Tool], /, *, may_be_more: bool) -> None:
        for name in () if may_be_more else self._status.tools:
            if name not in tools:
                raise refused(f"the status 'tool.{name}' is about a tool that the agent does not have", name, tools)
