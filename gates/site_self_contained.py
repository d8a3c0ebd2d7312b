"""The built documentation loads nothing from another host: it reads the same without a network.

Links that a reader may click are fine; scripts, styles, fonts, images and frames are not.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from gates.report import ROOT, finish, relative

LOADS = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "object": "data", "script": "src", "source": "src",
    "video": "src",
}  # fmt: skip
LINK_RELS = {"stylesheet", "preload", "modulepreload", "preconnect", "dns-prefetch", "icon", "manifest", "prefetch"}
REMOTE = re.compile(r"^(https?:)?//")
IN_STYLE = re.compile(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]((?:https?:)?//[^'\"]+)")


class _Loads(HTMLParser):
    """Collects what a page loads by itself, and whether it holds a diagram that a script would fetch code for."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if REMOTE.match(target := values.get(LOADS.get(tag, ""), "")):
            self.remote.append(target)
        if tag == "link" and LINK_RELS & set(values.get("rel", "").split()) and REMOTE.match(values.get("href", "")):
            self.remote.append(values["href"])
        if "mermaid" in values.get("class", "").split():
            self.remote.append("a mermaid diagram, whose code the theme fetches")
        self.remote.extend(a or b for a, b in IN_STYLE.findall(values.get("style", "")))


def problems(site: Path = ROOT / "site") -> Iterator[str]:
    """Every address that a page or style sheet of a built site loads by itself."""
    pages = sorted(site.rglob("*.html"))
    if not pages:
        yield f"{site.name}/ holds no page: build it first (make docs)"
    for page in pages:
        reader = _Loads()
        reader.feed(page.read_text(encoding="utf-8"))
        yield from (f"{relative(page, site)}: loads {address}" for address in dict.fromkeys(reader.remote))
    for sheet in sorted(site.rglob("*.css")):
        for a, b in IN_STYLE.findall(sheet.read_text(encoding="utf-8")):
            yield f"{relative(sheet, site)}: loads {a or b}"


if __name__ == "__main__":
    finish(problems(Path(sys.argv[1])) if len(sys.argv) > 1 else problems())
