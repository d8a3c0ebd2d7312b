"""``onrecord flows check`` and ``draw``: what is in flows, and what is wrong with them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from onrecord.flows import Flow, OnMessage, Say
from onrecord.flows.drawing import to_dot, to_mermaid
from tests.cli.agents import Cli, command, environment
from tests.cli.flow_agents import DOUBTFUL, STAYS

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the agents of these tests, as the current one."""
    (tmp_path / "flow_stays.py").write_text(STAYS, encoding="utf-8")
    (tmp_path / "flow_doubtful.py").write_text(DOUBTFUL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- check -----------------------------------------------------------------------------------------------------------


def test_check_prints_all_that_is_in_the_flows(cli: Cli) -> None:
    """Triggers, steps with the ways out of them, fields, actions, tools, and how each flow ends."""
    ran = cli("flows", "check", "flow_stays.py:agent")
    assert ran.code == 0, ran
    assert ran.err == ""
    assert ran.out.splitlines() == [
        "Stays: 3 flows",
        "",
        "booking: Book a stay",
        "  about     Books a stay in a city.",
        "  starts    message: “wants a room”",
        "            any message while nobody asks, for no other flow begins with one: see lone_flow",
        "  steps     ask      asks city, nights",
        "            reserve  does reserve",
        "                       → sorry: it fails",
        "            breath   waits 3s",
        "            booked   says “Booked: {{data.city}}, {{context.hotel}}.” and [ticket]",
        "                       → end",
        "            sorry    says “Sorry.”",
        "  asks      city, nights",
        "  actions   reserve",
        "  tools     price",
        "  then      ends",
        "",
        "nudge",
        "  starts    silence of 24h",
        "  steps     first    says “Still there?”",
        "            pause    waits 2d",
        "                       → last: no reply",
        "                       → end: a reply",
        "            last     says “Last try.”",
        "            payment  waits for paid, up to 3d",
        "                       → thanks: paid",
        "                       → end: not in time",
        "            thanks   says “Thanks!”",
        "  then      ends",
        "",
        "receipt",
        "  starts    event paid, after 1h",
        "  steps     got  says “We got {{input.amount}}.”",
        "  then      ends",
        "",
        "all is well",
    ]


def test_check_prints_what_holds_for_a_whole_flow(cli: Cli) -> None:
    """Its premise, what it takes when told and forgets when it starts, no tools, and that it stays."""
    ran = cli("flows", "check", "flow_doubtful.py:full")
    assert ran.code == 0, ran
    assert ran.out.splitlines()[2:-2] == [
        "a",
        "  starts    by hand, or from another flow",
        "  while     name is known",
        "  steps     c  asks city",
        "            t  Greets: talks: Hi",
        "  asks      city",
        "  takes     name (when told)",
        "  forgets   city (when it starts)",
        "  then      stays with the talk it took last",
    ]


@pytest.mark.parametrize(
    ("flows", "is_told"),
    [
        ("one", True),
        ("one, any, hint", True),
        ("one, two", False),
        ("one, lone_flow='score'", False),
        ("any", False),
    ],
)
def test_a_flow_that_any_message_starts_says_so(cli: Cli, folder: Path, flows: str, is_told: bool) -> None:
    """It is the only one that is there for what a message may want, so nothing is scored."""
    text = (
        "from onrecord import Agent\nfrom onrecord.flows import Flow, Flows, OnMention, OnMessage, Say\n"
        'one = Flow("one", on=[OnMessage("wants a room")], steps=[Say("Hi")])\n'
        'two = Flow("two", on=[OnMessage("wants to leave")], steps=[Say("Hi")])\n'
        'any = Flow("any", on=[OnMessage()], steps=[Say("Hi")])\n'
        'hint = Flow("hint", on=[OnMention("is loud")], steps=[Say("Hi")])\n'
        f'agent = Agent("offline", director=Flows({flows}))\n'
    )
    (folder / "flow_alone.py").write_text(text, encoding="utf-8")
    ran = cli("flows", "check", "flow_alone.py:agent")
    assert ran.code == 0, ran
    assert ("any message while nobody asks" in ran.out) is is_told


def test_a_step_that_nobody_comes_to_is_a_problem_and_doubt_a_warning(cli: Cli) -> None:
    """A sentence for each, and exit code 1 for a problem; nothing that a name holds steers the terminal."""
    ran = cli("flows", "check", "flow_doubtful.py:agent")
    assert ran.code == 1
    assert ran.err == ""
    wait = 'warning  flow "a", step "w": a when branch of a wait is never judged; use only_if'
    assert ran.out.splitlines()[-4:] == [
        f"{wait}, or ask in a talk step after it",
        'warning  flow "b", step "x": then starts flow "gone", which this agent does not have (there are "a", "b")',
        'problem  flow "b", step "y": no run can reach it',
        "1 problem and 2 warnings",
    ]
    assert "b: B\\x1b[31m" in ran.out
    assert "says “x\\u202e”" in ran.out
    assert "\x1b" not in ran.out


def test_a_warning_is_no_failure_unless_that_is_asked_for(cli: Cli) -> None:
    """What is only doubtful may be meant; ``--strict`` is for those who do not want any of it."""
    assert cli("flows", "check", "flow_doubtful.py:warned").code == 0
    ran = cli("flows", "check", "flow_doubtful.py:warned", "--strict")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "1 warning")
    assert cli("flows", "check", "flow_doubtful.py:sound", "--strict").code == 0


def test_flows_that_cannot_be_built_are_told_in_a_line_with_the_right_name(cli: Cli) -> None:
    """The flow, the step, the thing, and the nearest name; no traceback, exit code 1."""
    ran = cli("flows", "check", "flow_doubtful.py:misspelt")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        'onrecord: \'flow_doubtful.py:misspelt\': flow "booking", step "ask": unknown field "names" in collect',
        '  hint: did you mean "name"?',
    ]


@pytest.mark.parametrize("name", ["check", "draw", "simulate"])
def test_an_agent_without_flows_is_told_so(cli: Cli, name: str) -> None:
    """As wrong usage, by each of the three."""
    ran = cli("flows", name, "flow_doubtful.py:plain")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "onrecord: flow_doubtful.py:plain is an agent without flows",
        "  hint: give it director=Flows(...)",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "onrecord flows: the following arguments are required: COMMAND"),
        (("check",), "onrecord flows check: the following arguments are required: MODULE:AGENT"),
        (("check", "x", "--format", "dot"), "onrecord flows check: it does not take '--format'"),
        (("draw", "x", "--format", "svg"), "onrecord flows draw: argument --format: invalid choice: 'svg'"),
        (("check", "nowhere.py"), "onrecord: there is no file 'nowhere.py'"),
        (("draw", "flow_doubtful.py:agnt"), "onrecord: 'flow_doubtful.py' has no 'agnt'"),
        (("draw", "flow_stays.py:agent", "boking"), "onrecord: flow_stays.py:agent has no flow 'boking'"),
        (("draw", "flow_doubtful.py:sound", "zzz"), "onrecord: flow_doubtful.py:sound has no flow 'zzz'"),
        (("draw", "flow_doubtful.py:empty", "a"), "onrecord: flow_doubtful.py:empty has no flow 'a'"),
    ],
)
def test_wrong_usage_is_a_line_and_a_hint(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    """On standard error, with exit code 2."""
    ran = cli("flows", *arguments)
    assert (ran.code, ran.out) == (2, "")
    line, hint = ran.err.splitlines()
    assert line.startswith(told)
    assert hint.startswith("  hint: ")


def test_the_nearest_flow_is_offered_or_all_of_them(cli: Cli) -> None:
    """Whichever helps."""
    assert cli("flows", "draw", "flow_stays.py:agent", "boking").err.endswith("hint: did you mean 'booking'?\n")
    assert cli("flows", "draw", "flow_stays.py:agent", "x").err.endswith("there are 'booking', 'nudge', 'receipt'\n")
    assert cli("flows", "draw", "flow_doubtful.py:empty", "x").err.endswith("hint: it has none\n")


# ---- draw ------------------------------------------------------------------------------------------------------------


def test_draw_prints_all_flows_or_those_that_are_named(cli: Cli) -> None:
    """In the order they are named in, each once; Mermaid unless DOT is asked for; nothing else on any stream."""
    receipt = '    f0t0(["event paid, after 1h"])\n'
    ran = cli("flows", "draw", "flow_stays.py:agent")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith('flowchart TD\n  subgraph f0["Book a stay"]\n')
    assert ran.out.count("subgraph") == 3
    chosen = cli("flows", "draw", "flow_stays.py:agent", "receipt", "nudge", "receipt")
    assert receipt in chosen.out
    assert chosen.out.count("subgraph") == 2
    dot = cli("flows", "draw", "flow_stays.py:agent", "receipt", "--format", "dot")
    assert dot.out.startswith("digraph flows {\n")
    assert '    f0t0 [shape=oval, label="event paid, after 1h"];\n' in dot.out


def test_what_draw_prints_is_what_the_functions_return(cli: Cli, folder: Path) -> None:
    """To the byte, so that documents can be made by either; also where the screen cannot show a character."""
    flow = Flow("ola", name="Olá → 名", on=[OnMessage("quer um quarto")], steps=[Say("Até já!", id="bye")])
    (folder / "flow_one.py").write_text(
        "from onrecord import Agent\nfrom onrecord.flows import Flow, Flows, OnMessage, Say\n"
        "agent = Agent('offline', director=Flows(Flow('ola', name='Olá → 名', on=[OnMessage('quer um quarto')],\n"
        "    steps=[Say('Até já!', id='bye')])))\n",
        encoding="utf-8",
    )
    assert cli("flows", "draw", "flow_one.py").out == to_mermaid([flow])
    assert cli("flows", "draw", "flow_one.py", "--format", "dot").out == to_dot([flow])
    done = subprocess.run(
        command("flows", "draw", "flow_one.py"), capture_output=True, cwd=folder, check=False,
        env=environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b'subgraph f0["Ol? ? ?"]' in done.stdout
