"""The help texts shown in the documents are what the command line prints today.

A page shows one as a fenced block titled with its command: ```` ```text title="onrecord chat --help" ````.
Compared without regard to line breaks and spaces, which differ between Python versions.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from gates.report import ROOT, finish, relative
from gates.snapshot import HOW, write_requested

BLOCK = re.compile(r'(^```text title="(onrecord [^"]*--help)"\n)(.*?)(^```$)', re.MULTILINE | re.DOTALL)


def problems(root: Path = ROOT, *, write: bool = False) -> Iterator[str]:
    """Every help text in ``docs`` and the README that is not current; rewritten instead when asked to."""
    for page in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        text = page.read_text(encoding="utf-8")
        changed = text
        for start, command, shown, end in BLOCK.findall(text):
            now = help_text(command)
            if "".join(shown.split()) == "".join(now.split()):
                continue
            if write:
                changed = changed.replace(start + shown + end, f"{start}{now.rstrip()}\n{end}")
            else:
                yield f"{relative(page, root)}: `{command}` prints something else now; {HOW}"
        if write and changed != text:
            page.write_text(changed, encoding="utf-8")


def help_text(command: str) -> str:
    """What a command such as ``onrecord chat --help`` prints, 100 columns wide."""
    code = "import sys; from onrecord.cli.main import main; sys.argv[0] = 'onrecord'; sys.exit(main())"
    arguments = [sys.executable, "-c", code, *command.split()[1:]]
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


if __name__ == "__main__":
    finish(problems(write=write_requested()))
