"""What `regenerate` takes over from earlier runs: the bytes stay what they are without."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from places import KIT
from toy_kit import change

from autograder.authoring.cache import ResultCache, imported_texts, may_keep_something, used_text
from autograder.authoring.fixtures.verify import regenerate_into

SOLUTION = "import math\nLIMIT = top()\n\n\ndef top(): ...\ndef f(): return g()\ndef g(): ...\n@f\ndef h(): ...\n"


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """The files of a set, each with when it was written."""
    paths = (path for kind in ("public/*", "hidden/*", "manifest.json") for path in folder.glob(kind))
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def results_in(cache: Path) -> set[str]:
    with sqlite3.connect(cache / "bandits.sqlite") as table:
        return {key for (key,) in table.execute("SELECT key FROM results")}


@pytest.mark.long
def test_cached_regeneration_writes_the_bytes_of_a_whole_one(tmp_path: Path) -> None:
    root, cache = tmp_path / "course", tmp_path / "cache"
    for name in ("fixtures", "solution"):
        shutil.copytree(KIT / name / "bandits", root / name / "bandits")
    folder = root / "fixtures" / "bandits"
    before = contents(folder)
    for _ in range(2):
        regenerate_into(folder, folder, cache=cache)
        assert contents(folder) == before  # not written again
    known = results_in(cache)

    change(
        folder / "mistakes.py", '"np.log(steps) / np.maximum(counts, 1)")', '"np.log(steps) / np.maximum(counts, 2)")'
    )
    regenerate_into(folder, folder, cache=cache)
    of_mistake = results_in(cache) - known
    assert len(of_mistake) == 21  # the cases of ucb, and that nothing is left to run for these texts
    change(folder / "functions.py", "100 * rng.uniform(0.5, 3.0, run)", "100 * rng.uniform(0.5, 2.5, run)")
    regenerate_into(folder, folder, cache=cache)
    assert 0 < len(results_in(cache) - known - of_mistake) < 200  # two cases, and mistakes that keep an earlier answer
    regenerate_into(folder, root / "whole")
    assert {name: data for name, (data, _) in contents(folder).items()} == {
        name: data for name, (data, _) in contents(root / "whole").items()
    }


def test_unusable_cache_knows_nothing(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "of.sqlite")
    cache.keep({"a": b"1", "b": b""})
    assert cache.known(["a", "b", "c"]) == {"a": b"1", "b": b""}
    (tmp_path / "of.sqlite").write_bytes(b"damaged" * 1000)
    assert cache.known(["a"]) == {}
    cache.keep({"a": b"2"})
    assert cache.known(["a"]) == {"a": b"2"}
    for path in (None, tmp_path, tmp_path / "of.sqlite" / "below"):
        ResultCache(path).keep({"a": b"1"})
        assert ResultCache(path).known(["a"]) == {}


@pytest.mark.parametrize(("name", "left_out"), [("f", ["h"]), ("g", ["f", "h"]), ("h", []), ("top", ["f", "g", "h"])])
def test_used_text_leaves_out_what_a_function_does_not_use(name: str, left_out: list[str]) -> None:
    text = used_text(SOLUTION, [name])
    assert [one for one in ("f", "g", "h", "top") if f"def {one}()" not in text] == left_out
    assert "import math\nLIMIT = top()" in text


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("import numpy as np\ndef f(x, n=1):\n    return np.abs(x)", False),
        ("def f(x, n=[]): ...", True),
        ("def f(x):\n    f.last = x", True),
        ("def f(x):\n    def g():\n        global last", True),
        ("@cache\ndef f(x): ...", True),
        ("last = {}\ndef f(x): ...", True),
    ],
)
def test_text_that_may_keep_something_is_known(text: str, may: bool) -> None:
    assert may_keep_something(text) is may


@pytest.mark.parametrize("work", ["autograder.authoring.exam.fates", "autograder.authoring.fixtures.regenerate"])
def test_results_depend_on_all_that_their_work_imports(work: str) -> None:
    shown = "sorted(name for name in sys.modules if name.partition('.')[0] == 'autograder')"
    command = [sys.executable, "-c", f"import sys, {work}; print(*{shown})"]
    imported = {*subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()}
    beside = {
        f"autograder.sandbox.worker.{path.stem}" for path in (KIT / "autograder/sandbox/worker").glob("[a-z]*.py")
    }
    assert imported | beside <= imported_texts(work).keys()
    assert not {name for name in imported_texts(work) if "handout" in name or name.endswith(".new")}
