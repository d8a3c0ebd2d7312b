"""Memory and retrieval keep the promises of every feature; with nothing to show or keep they change nothing at all."""

from __future__ import annotations

import pytest

from onrecord.memory import Corpus, Document, Episodes, Facts, Memory, PlainShelf, Recent, Retrieve
from onrecord.memory.documents import passages_of
from onrecord.testing.conformance.feature import FeatureConformance, InertFeatureConformance, MakeFeature

pytestmark = pytest.mark.unit


def corpus(text: str) -> Corpus:
    """One passage."""
    return Corpus(passages_of(Document("d", text), [(0, len(text))]))


class TestMemory(FeatureConformance):
    """One that keeps everything."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Memory(PlainShelf(), (Recent(4), Facts(), Episodes()))


class TestReadOnlyMemory(InertFeatureConformance):
    """One that only reads, and finds nothing."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Memory(PlainShelf(), (Recent(4), Facts(), Episodes()), read_only=True)


class TestRetrieve(FeatureConformance):
    """One that finds something."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Retrieve(corpus("hi, look here"))


class TestIdleRetrieve(InertFeatureConformance):
    """One that finds nothing."""

    @pytest.fixture
    def make_feature(self) -> MakeFeature:
        return lambda: Retrieve(corpus("zebra"))
