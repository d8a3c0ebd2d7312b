"""Link: what one session does with a server: consults it for a round, calls its tools, lets go of it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

from onrecord.conversation.identity import SessionKey
from onrecord.jsonio import Json
from onrecord.mcp_bridge.failures import CallRefused, ServerFailed, SessionGone
from onrecord.mcp_bridge.listing import Described
from onrecord.mcp_bridge.reach import Reach, Terms
from onrecord.mcp_bridge.results import Media, result_of
from onrecord.mcp_bridge.shown_words import without
from onrecord.models.request import Request
from onrecord.record.kinds import Noted
from onrecord.tools.tool import Tool, ToolContext, ToolResult
from onrecord.tools.toolset import OfferContext

__all__ = ("Link",)

TOLD_SESSIONS = 1_024
"""How many sessions that share a link it remembers to have told."""


class Link:
    """A link belongs to one event loop. It opens when it is first needed, and again when it is needed once more.

    ``users`` are the rounds and calls that are at it now.
    """

    def __init__(self, terms: Terms, context: OfferContext) -> None:
        self._terms, self._reach = terms, Reach(terms, context, self._tool)
        self._loop = asyncio.get_running_loop()
        self._told: OrderedDict[SessionKey | None, int] = OrderedDict()
        self._idle: asyncio.TimerHandle | None = None
        self._is_leaving = False
        self.users = 0
        self.used_at = self._loop.time()

    # ---- for a round

    async def offer(self, ctx: OfferContext, context: OfferContext) -> tuple[Tool, ...]:
        """The tools for a round, listed anew where that is due; as they were last, where the server cannot be had.

        ``ctx`` is who asks, ``context`` what functions for headers and variables are told.
        """
        reach = self._reach
        reach.context = context
        self._enter()
        try:
            if not reach.is_fresh:
                await reach.refresh()
        finally:
            self._exit()
        if self._told.get(ctx.session) != reach.reports:
            self._tell(ctx)
        return reach.tools

    def _tell(self, ctx: OfferContext) -> None:
        """Files what there is to say, once in each session."""
        self._told[ctx.session] = self._reach.reports
        self._told.move_to_end(ctx.session)
        if len(self._told) > TOLD_SESSIONS:
            self._told.popitem(last=False)
        for text in self._reach.report:
            ctx.note(Noted(by=f"mcp:{self._name}", text=text))

    @property
    def _name(self) -> str:
        return self._terms.wanted.server

    def _tool(self, described: Described) -> Tool:
        async def handler(args: Mapping[str, Json], ctx: ToolContext[Any]) -> ToolResult:
            return await self.call(described.name, args, ctx.key, accepts=_shown(ctx, self._terms.accepts))

        tool = Tool(
            described.id, handler, described.description, parameters=described.parameters,
            read_only=described.read_only, destructive=described.destructive,
            max_result_size_chars=self._terms.wanted.limits.result,
        )  # fmt: skip
        return tool if self._terms.adjust is None else self._terms.adjust(tool)

    # ---- for a call

    async def call(
        self, name: str, args: Mapping[str, Json], key: str, *, accepts: Collection[Media]
    ) -> ToolResult:  # fmt: skip
        """What the server answers. Nothing that it does raises but ServerFailed, whose words are for the model."""
        self._enter()
        try:
            return await self._called(name, args, key, accepts)
        except CallRefused as refused:
            words = without(refused.words, self._reach.secrets)
            return ToolResult({"error": f"The server {self._name!r} refused: {words}"}, status="failed")
        except SessionGone:
            failed = ServerFailed("mcp-lost", "it does not know this connection")
        except ServerFailed as error:
            failed = error
        finally:
            self._exit()
        unknown = " Whether it did something is not known." if failed.code in {"mcp-lost", "mcp-timeout"} else ""
        raise ServerFailed(failed.code, f"The server {self._name!r} failed: {failed}.{unknown}") from None

    async def _called(
        self, name: str, args: Mapping[str, Json], key: str, accepts: Collection[Media]
    ) -> ToolResult:  # fmt: skip
        terms, meta = self._terms, {"onrecord/key": key}
        try:
            answer = await (await self._reach.connection()).call(name, args, meta, terms.timeout_s)
        except SessionGone:  # it did nothing, so once more over a new connection
            answer = await (await self._reach.connection()).call(name, args, meta, terms.timeout_s)
        return result_of(answer, terms.wanted.limits, accepts=accepts, secrets=self._reach.secrets)

    # ---- its end

    def _enter(self) -> None:
        self.users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _exit(self) -> None:
        self.users -= 1
        self.used_at = self._loop.time()
        if self.users:
            return
        if self._is_leaving:
            self._close_soon()
        elif not self._reach.is_over:
            self._idle = self._loop.call_later(self._terms.idle_s, self._close_soon)

    def _close_soon(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._reach.close_soon()

    def refresh(self) -> None:
        """The tools are listed anew before the next round."""
        self._reach.changed()

    def leave(self) -> list[asyncio.Task[None]]:
        """Lets the connection go, once nobody uses it. What has to end for it to be gone.

        A turn that still has tools of this link may call them: that opens a connection for the one call.
        """
        self._is_leaving = True
        if self.users:
            return []
        self._close_soon()
        return list(self._reach.ending)


def _shown(ctx: ToolContext[Any], accepts: Collection[Media]) -> Collection[Media]:
    """The kinds of content that the model which called can be shown; others are told in words.

    What stands in the conversation stands in every later request: a server must not be able to end a talk with a
    picture. With `Media` or `Degrade` all kinds are kept, since those decide for each request.
    """
    request: Request | None = getattr(getattr(ctx, "turn", None), "request", None)  # of the context that the loop makes
    if request is None or request.view.stand_ins or request.view.degrade:
        return accepts
    card = request.model.card
    takes = {"image": card.images, "audio": card.audio, "file": card.files}
    return [kind for kind in accepts if takes[kind]]
