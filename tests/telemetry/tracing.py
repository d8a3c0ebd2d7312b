"""Spans as tests read them: an application's own tracer provider that keeps what it is given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from onrecord.telemetry import Otel
from onrecord.testing import FakeEffects

__all__ = ("Ticking", "Traced", "at_ms", "attributes")


class Traced:
    """A provider, and an `Otel` that gives it spans with ids as they are."""

    def __init__(self, ids: Callable[[str], str] | None = str) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.feature = Otel(tracer_provider=self.provider, ids=ids)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, by when they began, then by name."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: (span.start_time or 0, span.name))

    def named(self, name: str) -> ReadableSpan:
        """The one span of this name."""
        (span,) = (span for span in self.spans if span.name == name)
        return span

    def tree(self) -> list[tuple[str, str]]:
        """Each span with the name of the one above it."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return sorted((span.name, names.get(span.parent.span_id, "?") if span.parent else "") for span in self.spans)


class Ticking(FakeEffects):
    """A clock that goes on by a millisecond whenever somebody looks."""

    def now(self) -> datetime:
        self.advance(milliseconds=1)
        return super().now()


def at_ms(span: ReadableSpan) -> tuple[int, int]:
    """When a span began and ended, in milliseconds of the ticking clock."""
    zero = int(FakeEffects().at.timestamp()) * 1000
    return (span.start_time or 0) // 1_000_000 - zero, (span.end_time or 0) // 1_000_000 - zero


def attributes(thing: Any) -> dict[str, Any]:
    """The attributes of a span or an event."""
    return dict(thing.attributes or {})
