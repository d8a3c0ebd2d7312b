"""One conversation over four vendors, a turn each: ``python -m examples.four_vendors``, or with names of your own.

A vendor without a key says which variable it wants, and the next one goes on with what was said so far.
"""

import asyncio
import sys
from collections.abc import Sequence

from examples.hotel import agent
from onrecord import ModelError, Session

FOUR = (
    "openai:gpt-5-mini",
    "openai-responses:gpt-5-mini",
    "anthropic:claude-sonnet-4-5",
    "google:gemini-3.8-flash",
)
QUESTIONS = (
    "How much are 3 nights in Porto?",
    "And one more night?",
    "Is there breakfast?",
    "Sum up what I have asked so far.",
)


async def main(names: Sequence[str] = FOUR) -> None:
    """Each question to the next name, in one session."""
    session: Session | str = "guest"
    for name, question in zip(names, QUESTIONS, strict=False):
        print(f"\nguest> {question}")
        try:
            result = await agent.with_(model=name).turn(question, session=session)
        except ModelError as problem:
            print(f"{name}> {problem}: {problem.hint}")
        else:
            session = result.session or session
            print(f"{name}> {result.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or FOUR))
