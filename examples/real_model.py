"""The hotel's concierge on a real model: a streamed answer with a tool call, and a typed quote.

From the root of the repository, with a GGUF file or with a server of llama.cpp's that already runs:

    python -m examples.real_model local:/path/to/model.gguf
    python -m examples.real_model http://127.0.0.1:8080/v1
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

from examples.hotel import agent as hotel
from onrecord import Agent, ConfigurationError, OnrecordError, TextDelta, TurnResult, preset
from onrecord.conversation.outgoing import CallDelta
from onrecord.models.model import Model
from onrecord.models.names import model_named
from onrecord.providers.local.plain_calls import PlainCalls
from onrecord.providers.openai_compatible import VENDORS, openai_compatible

QUESTION = "How much are 3 nights in Porto?"
ORDER = "I want a quote for 2 nights in Lisbon."
# A model of this size loses the thread of longer instructions.
INSTRUCTIONS = (
    "You are Aurora, a hotel concierge. Call a tool once when you need facts. "
    "When you have its result, answer in one short sentence."
)


@dataclass
class Quote:
    """A price for a stay."""

    city: str
    nights: int
    total: int


def model_of(name: str) -> Model:
    """The model of a name, or behind an address. Raises ConfigurationError."""
    if name.startswith(("http://", "https://")):
        # Behind an address a small model needs the same help with calls and typed answers that `local:` gives it.
        dialect = VENDORS["llamacpp"].dialect
        return PlainCalls(openai_compatible(name, "any", provider="llamacpp", dialect=dialect, silence_s=300))
    return model_named(name)


async def told(agent: Agent[Any, Any], words: str) -> TurnResult[Any]:
    """One turn, printed while it runs."""
    print(f"\nguest> {words}\n{agent.name}> ", end="", flush=True)
    stream, pieces = agent.turn_stream(words), 0
    async for delta in stream:
        if isinstance(delta, TextDelta):
            pieces += 1
            print(delta.text, end="", flush=True)
        elif isinstance(delta, CallDelta):
            print(f"[{delta.name} {delta.status} {dict(delta.args)}] ", end="", flush=True)
    result = await stream.result()
    print(f"\n        ({result.llm_calls} model calls, {pieces} pieces of text, {result.usage})")
    return result


async def main(name: str) -> None:
    """Both turns."""
    agent = hotel.with_(model=preset(model_of(name), temperature=0, max_tokens=120, seed=1), instructions=INSTRUCTIONS)
    await told(agent, QUESTION)
    quote = await told(agent.with_(output=Quote), ORDER)
    print(f"        output: {quote.output!r}")


if __name__ == "__main__":
    try:
        if len(sys.argv) != 2:
            raise ConfigurationError("one argument is needed: a model", hint=(__doc__ or "").strip())
        asyncio.run(main(sys.argv[1]))
    except OnrecordError as problem:
        sys.exit(f"{problem}\n{problem.hint}")
