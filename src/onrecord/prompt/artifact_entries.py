"""What artifacts tell the record: that something was stored, spent, refused or shown. Never what is in it.

``what`` is the kind of the artifact, such as ``tool-result/search``.
"""

from __future__ import annotations

from onrecord.record.entry import Body

__all__ = ("ArtifactExpired", "ArtifactMinted", "ArtifactPresented", "ArtifactRefused", "ArtifactResolved")


class ArtifactMinted(Body, frozen=True, gc=False, kw_only=True, tag="artifacts.minted"):
    """Something was stored, under this ref."""

    ref: str
    what: str
    media_type: str
    bytes: int
    call: str = ""
    label: str = ""


class ArtifactResolved(Body, frozen=True, gc=False, kw_only=True, tag="artifacts.resolved"):
    """A ref was spent: by an argument (``via`` its name), or by a tool's own reading."""

    ref: str
    what: str
    bytes: int
    via: str
    tool: str = ""


class ArtifactExpired(Body, frozen=True, gc=False, kw_only=True, tag="artifacts.expired"):
    """A ref was asked for when its time was over."""

    ref: str


class ArtifactRefused(Body, frozen=True, gc=False, kw_only=True, tag="artifacts.refused"):
    """Something was not stored (``put``) or not handed over (``get``), and why: never its content."""

    op: str
    reason: str
    ref: str = ""
    tool: str = ""


class ArtifactPresented(Body, frozen=True, gc=False, kw_only=True, tag="artifacts.presented"):
    """The model asked to put an artifact before the person; a screen that reads the record shows it."""

    ref: str
    shown_as: str
    what: str
