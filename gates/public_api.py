"""The public API as text: every name of every ``__all__``, with its signature, fields and public methods.

Read from the source, so the file is the same on every Python version. Names are for ever: a difference is a decision.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from gates.report import ROOT, finish, python_files
from gates.snapshot import compare, write_requested

SNAPSHOT = "gates/snapshots/public_api.txt"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def render(root: Path = ROOT) -> str:
    """The whole public API below ``src/onrecord``."""
    blocks: list[str] = []
    for path in python_files(root / "src" / "onrecord"):
        parts = path.relative_to(root / "src").with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        names = [part for part in parts if part != "__init__"]
        if lines := list(_module(ast.parse(path.read_text(encoding="utf-8")))):
            blocks.append("\n".join([".".join(names), *(f"  {line}" for line in lines)]))
    return "\n\n".join(blocks) + "\n"


def problems(root: Path = ROOT, *, write: bool = False) -> Iterator[str]:
    """What of the public API differs from the stored text, and what ``__all__`` promises in vain."""
    yield from compare(root / SNAPSHOT, render(root), write=write, what="the public API")


def _module(tree: ast.Module) -> Iterator[str]:
    public = _all_names(tree)
    defined: dict[str, list[str]] = {}
    private = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef) and n.name.startswith("_")}
    for node in tree.body:
        for name, lines in _statement(node, private):
            defined.setdefault(name, []).extend(lines)
    for name in sorted(public):
        yield from defined.get(name, [f"{name} = <loaded lazily>"])


def _all_names(tree: ast.Module) -> set[str]:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Tuple | ast.List):
                return {e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)}
    return set()


def _statement(node: ast.stmt, private: Mapping[str, ast.ClassDef]) -> Iterator[tuple[str, list[str]]]:
    if isinstance(node, Function):
        yield node.name, [_function(node)]
    elif isinstance(node, ast.ClassDef):
        yield node.name, [_head(node), *_members(node, private)]
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, [f"{target.id} = {_short(node.value)}"]
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        value = f" = {_short(node.value)}" if node.value else ""
        yield node.target.id, [f"{node.target.id}: {ast.unparse(node.annotation)}{value}"]
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, [f"{alias.asname or alias.name} from {node.module}"]
    elif isinstance(node, ast.If):
        for child in node.body:
            yield from _statement(child, private)


def _head(node: ast.ClassDef) -> str:
    bases = [ast.unparse(base) for base in node.bases]
    bases += [f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords if k.arg not in {"frozen", "omit_defaults"}]
    return f"class {node.name}({', '.join(bases)})"


def _members(node: ast.ClassDef, private: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    """Public fields and methods; those of a private base in the same module count as the class's own."""
    for base in node.bases:
        name = ast.unparse(base).split("[", maxsplit=1)[0]
        if name in private:
            yield from _members(private[name], private)
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_"):
            value = f" = {_short(item.value)}" if item.value else ""
            yield f"  {item.target.id}: {ast.unparse(item.annotation)}{value}"
        elif isinstance(item, ast.Assign):
            names = [t.id for t in item.targets if isinstance(t, ast.Name) and not t.id.startswith("_")]
            yield from (f"  {name} = {_short(item.value)}" for name in names)
        elif isinstance(item, Function) and (not item.name.startswith("_") or item.name in {"__init__", "__call__"}):
            marks = "".join(f"@{ast.unparse(d)} " for d in item.decorator_list)
            yield f"  {marks}{_function(item)}"


def _function(node: Function) -> str:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}"


def _short(value: ast.expr | None) -> str:
    text = ast.unparse(value) if value else ""
    return text if len(text) <= 300 else text[:300] + "..."


if __name__ == "__main__":
    finish(problems(write=write_requested()))
