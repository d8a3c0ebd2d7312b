"""Test doubles that belong to the library, since users test their agents too."""

from onrecord.testing.fakes import FakeEffects
from onrecord.testing.scripted import ScriptedModel, call, raises, reply, shown
from onrecord.testing.wire import wire

__all__ = ("FakeEffects", "ScriptedModel", "call", "raises", "reply", "shown", "wire")
