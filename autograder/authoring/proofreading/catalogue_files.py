"""What is wrong in a catalogue of mistakes, each with its line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from autograder.authoring.catalogue import refusals
from autograder.authoring.proofreading.fault import CASE, Fault, likely
from autograder.authoring.proofreading.python_files import Sources

WHERE = ("mistakes",)
TEXTS = ("slug", "function", "hint", "source")
R = TypeVar("R")


def collecting_refusals(call: Callable[[], R], sources: Sources) -> tuple[R, list[Fault]]:
    """What `call`, which imports the catalogue, returns, and every edit of it whose right text is not there once."""
    with refusals() as refused:
        found = call()
    right = "text as it stands in the right answer, there once"
    own = [entry for entry in refused if sources.folder in Path(entry[0]).parents]
    return found, [Fault(Path(file), line, what.rstrip("."), right) for file, line, what in own]


def catalogue_faults(module: ModuleType, sources: Sources, functions: Sequence[str]) -> Iterator[Fault]:
    """All that is wrong in MISTAKES."""
    listed = getattr(module, "MISTAKES", None)
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        yield Fault(sources.file_of("mistakes"), 1, f"MISTAKES is {type(listed).__name__}", "MISTAKES = (…,)")
        return
    seen: dict[str, dict[str, str]] = {"slug": {}, "source": {}}
    for mistake in listed:
        if lacking := [name for name in TEXTS if not isinstance(getattr(mistake, name, None), str)]:
            what = f"{str(mistake)[:60]!r} in MISTAKES has no {lacking[0]}"
            yield Fault(sources.file_of("mistakes"), 1, what, "what CORRECT.but(…) returns, or a Mistake")
            continue
        yield from (fault(sources, mistake) for fault in _about(mistake, functions))
        for what, known in seen.items():
            entry = getattr(mistake, what, "")
            if entry and entry in known:
                right = "one entry for each mistake" if what == "source" else f"a {what} of its own"
                whose = known[entry] if what != "slug" else "another mistake"
                path, line = _last_place(sources, mistake.slug)
                yield Fault(path, line, f"the {what} of {mistake.slug} is that of {whose}", right)
            known[entry] = mistake.slug


Told = Callable[[Sources, Any], Fault]


def _about(mistake: Any, functions: Sequence[str]) -> Iterator[Told]:
    slug = mistake.slug
    if not CASE.fullmatch(slug):
        yield _told(f"the slug {slug!r} is no slug", "small letters, digits and single dashes, such as not-scaled")
    if mistake.function not in functions:
        yield _told(f"{slug} is of {mistake.function}, which no item grades", likely(mistake.function, functions))
    if not mistake.hint.strip():
        yield _told(f"the hint of {slug} is empty", "a question or a pointer that does not give the line away")
    try:
        tree = ast.parse(mistake.source)
    except (SyntaxError, ValueError) as error:
        yield _told(f"the source of {slug} is not Python: {error}", "text that defines the function")
        return
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if mistake.function not in names:
        defined = f"defines {', '.join(names)}" if names else "defines no function"
        yield _told(f"the source of {slug} {defined}", f"a text with def {mistake.function}(…)")


def _told(what: str, right: str) -> Told:
    def fault(sources: Sources, mistake: Any) -> Fault:
        return Fault(*sources.place_of(mistake.slug, WHERE), what, right)

    return fault


def _last_place(sources: Sources, slug: str) -> tuple[Path, int]:
    """Where the slug stands for the last time."""
    found = [sources.place_of(slug, WHERE)]
    for path, tree in sources.trees.items():
        if "mistakes" in (path.stem, path.parent.name):
            found += [(path, n.lineno) for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value == slug]
    return found[-1]
