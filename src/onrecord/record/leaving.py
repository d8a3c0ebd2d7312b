"""What an entry leaves behind when it leaves the record: the texts that verdicts keep are for the record alone."""

from __future__ import annotations

from msgspec.structs import replace

from onrecord.record.entry import Entry
from onrecord.record.kinds import VerdictFiled

__all__ = ("leaving",)


def leaving(entry: Entry) -> Entry:
    """The entry as watchers, readers and exports get it; the same one where there is nothing to take out."""
    body = entry.body
    if isinstance(body, VerdictFiled) and (body.before_text or body.after_text):
        return replace(entry, body=replace(body, before_text="", after_text=""))
    return entry
