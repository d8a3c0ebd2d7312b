"""What model calls cost adds up."""

import pytest

from onrecord.conversation.usage import Usage

pytestmark = pytest.mark.unit


def test_usage_adds_up_count_by_count() -> None:
    """Nothing is mixed up or left out."""
    one = Usage(input_tokens=1, output_tokens=2, cached_input_tokens=3, reasoning_tokens=4)
    more = Usage(input_tokens=10, output_tokens=20, cached_input_tokens=30, reasoning_tokens=40)
    assert one + more == Usage(input_tokens=11, output_tokens=22, cached_input_tokens=33, reasoning_tokens=44)
