"""Telemetry: spans and structured logs of what turns do, without anything that was said."""

from onrecord.telemetry.logs import JsonLines, Logs
from onrecord.telemetry.otel import Otel
from onrecord.telemetry.pseudonyms import Pseudonyms

__all__ = ("JsonLines", "Logs", "Otel", "Pseudonyms")
