"""SessionArtifacts: the artifacts of one session, as its tools see them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from onrecord.conversation.messages import ToolCall
from onrecord.errors import StoreError, UsageError
from onrecord.jsonio import Json, digest, dumps, loads
from onrecord.prompt.artifact_entries import ArtifactExpired, ArtifactMinted, ArtifactRefused, ArtifactResolved
from onrecord.prompt.artifact_store import Artifact, ArtifactScope, ArtifactStore, checksum, damaged_artifact
from onrecord.record.entry import Body
from onrecord.turn.call import place_of
from onrecord.turn.turn import Turn

__all__ = ("JSON", "TEXT", "SessionArtifacts", "is_ref", "scope_of")

log = logging.getLogger("onrecord.prompt")

UNREADABLE = "what was stored under this ref cannot be read"

_REF = re.compile(r"art_[0-9a-f]{24}", re.ASCII)

TEXT, JSON = "text/plain", "application/json"


def scope_of(turn: Turn) -> ArtifactScope:
    """Whose artifacts a turn may see."""
    return ArtifactScope(session=turn.session.key, owner=turn.session.owner)


def is_ref(ref: Json) -> bool:
    """Whether this could be a ref."""
    return isinstance(ref, str) and _REF.fullmatch(ref) is not None


class SessionArtifacts(Struct, frozen=True, kw_only=True):
    """The artifacts of one session, as a handler sees them: it can name no other. Made by `Artifacts.of`.

    ``wanted`` says what the refs among its arguments named, by argument.
    """

    turn: Turn
    store: ArtifactStore
    call: ToolCall
    ttl_s: float | None = None
    wanted: Mapping[str, Artifact] = {}

    async def put(self, value: Json, kind: str, *, label: str = "", parents: tuple[str, ...] = ()) -> Artifact:
        """Stores a text, or any JSON. StoreError when that fails."""
        is_text = isinstance(value, str)
        data = value.encode() if isinstance(value, str) else dumps(value)
        return await self.keep(data, kind, TEXT if is_text else JSON, label=label, parents=parents)

    async def find(self, ref: Json, kind: str = "") -> Artifact | str:
        """What a ref names in this session; or why it names nothing, or nothing of this kind (empty: any)."""
        if not is_ref(ref):
            return "this is no ref"
        try:
            held = await self.store.head(scope_of(self.turn), ref)
        except StoreError as error:
            self._tell_unreadable(ref, error)
            return UNREADABLE
        if held is None:
            return "nothing is stored under this ref"
        if held.is_over(self.turn.now):
            self.tell(ArtifactExpired(ref=ref))
            return "what was stored under this ref is gone"
        return held if kind in ("", held.kind) else f"it is of kind {held.kind!r}"

    async def head(self, ref: str) -> Artifact:
        """What is known of it. UsageError (``artifact-missing``) for a ref that names nothing that can be read here."""
        held = await self.find(ref)
        if isinstance(held, str):
            raise UsageError(held, code="artifact-missing", hint="refs come with results that were too long to show")
        return held

    async def get(self, ref: str) -> Json:
        """What is stored: the text, or the JSON value. UsageError as for `head`."""
        held = await self.head(ref)
        value = await self.read(held)
        self.tell(ArtifactResolved(ref=ref, what=held.kind, bytes=held.bytes, via="get", tool=self.call.name))
        return value

    async def list(self) -> tuple[Artifact, ...]:
        """All that are not over, the oldest first."""
        held = await self.store.list(scope_of(self.turn))
        return tuple(one for one in held if not one.is_over(self.turn.now))

    def tell(self, body: Body) -> None:
        """Files what became of something, where the call stands."""
        self.turn.note(body, where=place_of(self.call))

    async def read(self, held: Artifact) -> Json:
        """The value of an artifact that was found, without another entry."""
        try:
            data = await self.store.get(scope_of(self.turn), held.ref)
            if data is not None and not held.is_whole(data):
                raise damaged_artifact(f"{held.ref} is not what was stored")
        except StoreError as error:
            self._tell_unreadable(held.ref, error)
            raise UsageError(UNREADABLE, code="artifact-damaged") from error
        if data is None:
            raise UsageError("what was stored under this ref is gone", code="artifact-missing")
        return loads(data) if held.media_type == JSON else data.decode()

    def _tell_unreadable(self, ref: str, error: StoreError) -> None:
        """For whoever runs this the log names the file; the model and the record only learn that it is so."""
        log.warning("%s", error)
        self.tell(ArtifactRefused(op="get", reason=error.code, ref=ref, tool=self.call.name))

    async def keep(
        self, data: bytes, kind: str, media_type: str, *, label: str = "", parents: tuple[str, ...] = ()
    ) -> Artifact:
        """Stores bytes and tells the record. The same bytes of the same kind have the same ref."""
        turn, ttl_s = self.turn, self.ttl_s
        ref = digest(b"\x1f".join((kind.encode(), data)), turn.session.digest_key)
        held = Artifact(
            ref=f"art_{ref}", kind=kind, media_type=media_type, bytes=len(data), checksum=checksum(data),
            created_at=turn.now, expires_at=None if ttl_s is None else turn.now + timedelta(seconds=ttl_s),
            label=label, turn=turn.id, call=self.call.id, parents=parents,
        )  # fmt: skip
        await self.store.put(scope_of(turn), held, data)
        self.tell(
            ArtifactMinted(
                ref=held.ref, what=kind, media_type=media_type, bytes=held.bytes, call=self.call.id, label=label
            )
        )
        return held
