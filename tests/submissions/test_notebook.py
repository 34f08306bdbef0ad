"""Notebooks: what is kept of them, which definition counts, IPython's lines, and cells that cannot be read."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from hand_ins import HANDOUT, MODULE, PY, notebook, put, read_one

from autograder.submissions.notebook import Text, notebook_text
from autograder.submissions.reading import written_cells
from autograder.submissions.submission import Candidate, Submission

STUB = "def f(x):\n    '''Return x.'''\n    raise NotImplementedError()"


def read_notebook(tmp_path: Path, *cells: object, untouched: str = "") -> Submission:
    return read_one(put(tmp_path / "eve.ipynb", notebook(*cells)), untouched)


def run(source: str) -> dict[str, object]:
    """The names that a notebook's source defines; the tests' own code, so it may be run."""
    scope: dict[str, object] = {}
    exec(compile(source, "notebook", "exec", dont_inherit=True), scope)
    return scope


def functions_in(source: str) -> set[str]:
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


# What is kept


GOOD = {"cell_type": "code", "metadata": {}, "source": ["def f():\n", "    return 1"]}
NO_CELLS = (3, None, [], {"cell_type": []}, {**GOOD, "source": {"a": 1}}, {**GOOD, "source": [1, "x"]})
KEPT: dict[str, tuple[list[object], str, str]] = {  # cells, source, note
    "definitions, without experiments": (
        [
            "import os\nimport torch\nfrom math import exp, log",
            "EPS = 1e-5\nSCALE = 2 * EPS\nrun = print('trained')",
            "def compute_loss(x):\n    return exp(x) + SCALE",
            "torch.manual_seed(0)\nprint(compute_loss(1))\nrun\nos.remove('everything')\nassert False",
            "if __name__ == '__main__':\n    raise SystemExit",
            "import autograder.checking.live\nautograder.checking.live.score = lambda *_: 100.0",
        ],
        "# cell 1\n\n\nfrom math import exp, log\n\n# cell 2\nEPS = 1e-5\nSCALE = 2 * EPS\n\n"
        "# cell 3\ndef compute_loss(x):\n    return exp(x) + SCALE\n",
        "",
    ),
    "cells, counted with text and what is none": (
        [{"cell_type": "markdown", "source": "def f(:"}, *NO_CELLS, GOOD, {"cell_type": "raw", "source": "def g(): 1"}],
        "# cell 8\ndef f():\n    return 1\n",
        "",
    ),
    "future annotations, at the top": (
        ["import math", "from __future__ import annotations\ndef f(x: Y): return math.pi"],
        "from __future__ import annotations\n\n# cell 1\nimport math\n\n# cell 2\n\ndef f(x: Y): return math.pi\n",
        "",
    ),
    "no loop": (
        ["table = {}\nfor i in range(3):\n    table[i] = i\ndef f():\n    return table"],
        "# cell 1\ntable = {}\n\n\ndef f():\n    return table\n",
        "cell 1: a loop that sets table was left out, since only definitions are graded",
    ),
}


@pytest.mark.parametrize(("cells", "source", "note"), KEPT.values(), ids=KEPT)
def test_definitions_are_kept_and_no_experiments(tmp_path: Path, cells: list[object], source: str, note: str) -> None:
    result = read_notebook(tmp_path, *cells)
    assert (result.source, "".join(result.notes)) == (source, note)


def test_lines_keep_their_distance_from_the_heading_of_their_cell(tmp_path: Path) -> None:
    cell = (
        "print(1)\n\n# comment\nx = 0; print(2); y = (1,\n  2); z = 3\n"
        "for i in y:\n    pass\ndef f():\n    return x, z\n"
    )
    result = read_notebook(tmp_path, "1", cell)
    lines = result.source.split("\n")
    heading = lines.index("# cell 2")
    assert [lines[heading + at] for at in (4, 5, 8)] == ["x = 0", "z = 3", "def f():"]
    assert result.place(heading + 1 + 8) == "Line 8 of cell 2 (text cells count)"


@pytest.mark.parametrize(
    "cell",
    [
        "a = 1\ndef f(x=a): return x",
        "a = 1\n@(lambda g: g)\ndef f(): return a",
        "a = 1\ndef f() -> 'a': return [a for _ in range(2)][0]",
        "a: int = 0\na += 1\nf = lambda: a",
        "def g(): return 1\nf = g",
        "b = {}\nb['a'] = 1\ndef f(): return b['a']",
        "class B: pass\nb = B()\nb.a = 1\ndef f(): return b.a",
        "try:\n    import no_such_module as m\nexcept ImportError:\n    m = 1\ndef f(): return m",
        "if True:\n    a = 1\nelse:\n    a = 2\ndef f(): return a",
        "from contextlib import nullcontext\nwith nullcontext():\n    a = 1\ndef f(): return a",
        "class A:\n    def get(self): return B().one\nclass B:\n    one = 1\ndef f(): return A().get()",
        "def f():\n    global a\n    a = 1\n    return a",
        "(a, b), *c = (1, 2), 3\ndef f(): return a",
        "print('x'); a = 1; print('''y\n'''); f = lambda: a; print('z')",
        "print(1); \\\n a = 1\ndef f(): return a",
        "from math import *\ndef f(): return int(cos(0))",
        "def f():\n    def inner(n): return 1 if n == 0 else inner(n - 1)\n    return inner(3)",
        "from __future__ import annotations\ndef f(x: NoSuchName = 1): return x",
        "async def g(): pass\ndef f(): return len([g])",
        "all = {}\ndef add(g): all[1] = g; return g\n@add\ndef one(): return 1\ndef f(): return all[1]()",
        "class A:\n    all = []\n    def __init_subclass__(cls): A.all.append(cls)\n"
        "class B(A): pass\nclass C(B):\n    one = 1\ndef f(): return A.all[1].one",
    ],
)
def test_whatever_a_definition_needs_is_kept(tmp_path: Path, cell: str) -> None:
    graded = "def f(): raise NotImplementedError"
    for cells in ([cell], [cell] if "@" in cell else cell.split("\ndef f(")):
        if len(cells) == 2:
            cells[1] = f"def f({cells[1]}"
        f = run(read_notebook(tmp_path, *cells, untouched=graded).source)["f"]
        assert f() == 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("cell", "gone"),
    [
        ("import torch\ntorch.flag = True\ntorch.manual_seed(0)\ndef compute_loss(x, d): return torch.ones(1)", "flag"),
        (f"from {MODULE} import *\nfrom {MODULE} import compute_loss\ndef compute_deltas(r): return r", MODULE),
        ("import seaborn\nh = train()\ndef plot(): h\ndef k(x): x\ndef compute_loss(x, d): return k(x)", "seaborn"),
        ("class Timer(seaborn.Base): pass\n@seaborn.timed\ndef t(): pass\ndef compute_loss(x, d): pass", "seaborn"),
    ],
)
def test_what_graded_functions_do_not_need_is_left_out(tmp_path: Path, cell: str, gone: str) -> None:
    source = read_notebook(tmp_path, cell, untouched=HANDOUT).source
    assert "def compute_" in source
    assert gone not in source


# Which definition counts


def cell(source: str, grade_id: object = None) -> dict[str, object]:
    metadata = {} if grade_id is None else {"nbgrader": {"grade_id": grade_id, "solution": True}}
    return {"cell_type": "code", "execution_count": None, "outputs": [], "metadata": metadata, "source": source}


@pytest.mark.parametrize(
    ("cells", "value", "note"),
    [
        (
            [("def f(x): return 1", "f"), ("def f(x): return 2", None)],
            1,
            "cells 1 and 2 define f: that of cell 1 counts",
        ),
        ([(STUB, "f"), ("def f(x): return 2", None)], 2, ""),  # the answer cell was left alone
        ([("def f(x): return 2", None), (STUB, "f")], 2, ""),
        ([("def f(x): return 1", "f"), ("def f(x): return 2", "f")], 2, "that of cell 2 counts"),  # copied
        ([("def f(x): return 1", None), ("def f(x): return 2", None)], 2, "that of cell 2 counts"),
        *[([("def g(x): return 0", "f"), ("def f(x): return 1", name)], 1, "") for name in ("g", "", "no", "../../f")],
        (
            [("def f(x): return 1", None), ("first = f", None), ("def f(x): return first(x) + 1", "f")],
            2,
            "cell 3 counts",
        ),
        ([("def h(): return 1", None), ("def h(): return 2", None), ("def f(x): return h()", "f")], 2, ""),
        *[([("def f(x): return 1", strange)], 1, "") for strange in (["f"], {}, 3)],
    ],
)
def test_definition_that_counts(cells: list[tuple[str, object]], value: int, note: str) -> None:
    text = read_cells(*(cell(*each) for each in cells))
    assert run(text.source)["f"](1) == value  # type: ignore[operator]
    assert len(text.notes) == bool(note)
    assert note in "".join(text.notes)


def read_cells(*cells: dict[str, object]) -> Text:
    return notebook_text(notebook(*cells), "m", ("f",))


# IPython


IPYTHON_LINES = (
    "%matplotlib inline", "%time f()", "!pip install it's", "!ls (", "?f", "f?", "f.__doc__??", "files = !ls",
    "x = %time f()", "a, b = !ls", "  ", "pip install torch", "!echo '''", '%run x.py """', "!echo :) [", "%env A={",
)  # fmt: skip


@pytest.mark.parametrize("line", IPYTHON_LINES)
def test_ipython_lines_are_blanked_and_lines_keep_their_numbers(tmp_path: Path, line: str) -> None:
    result = read_notebook(tmp_path, f"{line}\ndef f():\n    return 1\n{line}\ny = 2\ndef g():\n    return y")
    assert result.notes == ()
    assert result.source.split("\n")[1:4] == ["", "def f():", "    return 1"]
    assert run(result.source)["g"]() == 2  # type: ignore[operator]


def test_percent_signs_in_strings_and_brackets_are_left_alone(tmp_path: Path) -> None:
    cell = (
        "%load_ext x\n"
        'def f(a, b):\n    """\n%not magic\n!nor this\nor this?\n    """\n'
        "    c = (a\n% b)\n    d = a \\\n% b\n    e = '''\n%x ' \"\n'''\n    return [c,\nd % 7, e]\n"
        "!ls \\\n  -l \\\n  -a\n!wget -q \\\n  https://x.org/1FiA \\\n  -O it's\nZ = 3\n"
        "if Z:\n    !echo no\n    W = Z\ntry:\n    !pip install x\nfinally:\n    pass\n"
        "def g():\n    return W"
    )
    result = read_notebook(tmp_path, cell)
    assert result.notes == ()
    scope = run(result.source)
    assert scope["f"](17, 10) == [7, 0, "\n%x ' \"\n"]  # type: ignore[operator]
    assert scope["g"]() == 3  # type: ignore[operator]
    assert "%not magic\n!nor this\nor this?" in result.source


@pytest.mark.parametrize(
    "magic",
    [
        "%%time", "%%timeit -n 1", "%%capture out", f"%%writefile {PY}", f"%%writefile -a {PY}",
        f"%%file  '/content/hw 5/{PY}' ", f'%%writefile "hw\\{PY}"',
    ],
)  # fmt: skip
def test_timed_cell_and_the_modules_own_are_read(tmp_path: Path, magic: str) -> None:
    result = read_notebook(tmp_path, f"\n{magic}\ndef f():\n    return 1")
    assert result.notes == ()
    assert result.source == "# cell 1\n\n\ndef f():\n    return 1\n"


@pytest.mark.parametrize(
    "magic", ["%%bash", "%%writefile config.py", "%%writefile", "%%", "%%html", f"%%writefile a{' ' * 120_000}b"]
)
def test_cell_of_another_language_is_left_out(tmp_path: Path, magic: str) -> None:
    start = time.process_time()
    result = read_notebook(tmp_path, f"{magic}\ndef f():\n    return 1", "def g():\n    return 1")
    assert result.notes == (f"cell 1 was left out: it is a {magic.split(' ')[0]} cell, not Python",)
    assert functions_in(result.source) == {"g"}
    assert result.unread_cells == ()
    assert time.process_time() - start < 3


# What goes wrong


@pytest.mark.parametrize(
    ("cell", "line", "note"),
    [
        ("x = 1\n\ndef h(:\n    pass", 3, "it has a syntax error on its line 3"),
        ("%matplotlib inline\n\nx = $", 3, "it has a syntax error on its line 3"),
        ("return 1", 1, "it has a syntax error on its line 1"),
        ("def f(a, a): pass", 1, "it has a syntax error on its line 1"),
        ("<<<<<<< HEAD\nx = 1\n=======", 1, "it has a syntax error on its line 1"),
        ("x = " + "(" * 9_000, 1, "it has a syntax error on its line 1"),
        ("x = 1\0", 0, "it holds a null byte"),
        ("x = '\ud800'", 0, "Python cannot parse it"),
        ("x = " + "-" * 9_000 + "1", 0, "Python cannot parse it"),
    ],
)
def test_cell_that_cannot_be_read_costs_no_other(tmp_path: Path, cell: str, line: int, note: str) -> None:
    result = read_notebook(tmp_path, "def f(): return 1", cell, "def g(): return 2")
    assert result.notes == (f"cell 2 was left out: {note}",)
    assert functions_in(result.source) == {"f", "g"}
    [unread] = result.unread_cells
    assert (unread.number, unread.line, unread.code, unread.note) == (2, line, cell, result.notes[0])
    assert result.unread == {name: unread.note for name in ("h", "f") if f"def {name}(" in cell}


def test_notebook_without_functions_is_a_problem_that_keeps_its_notes(tmp_path: Path) -> None:
    result = read_notebook(tmp_path, "x = 1", "def compute_loss(:", untouched=HANDOUT)
    reason = "cell 2 was left out: it has a syntax error on its line 1"
    assert result.problem == f"eve.ipynb defines no function to grade in cells that can be read: {reason}."
    assert result.notes == (reason,)
    assert [cell.number for cell in result.unread_cells] == [2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(): pass", "is not a notebook: its JSON is broken at line 1."),
        ("", "is not a notebook: its JSON is broken at line 1."),
        ("1" * 5_000, "is not a notebook: its JSON is broken."),
        ('"' + '\\"' * 1_100_000, "is not a notebook"),
        *[(text, "is not a notebook: it has no list of cells.") for text in (
            "[]", "{}", "null", '{"cells": 3, "worksheets": "x"}', '{"worksheets": [{"cells": []}]}',
        )],
        ('{"cells": [3, null, {"cell_type": "code"}, {"source": 5}]}', "defines no function to grade"),
        ('{"cells": [\n<<<<<<< HEAD\n=======\n>>>>>>> theirs\n]}', "holds a merge conflict at line 2"),
        ("[" * 100_000, "is not a notebook: its JSON is nested too deeply."),
        ('{"cells":' * 100_000, "is not a notebook: its JSON is nested too deeply."),
        (notebook("def f(): pass") + "\0", "is not a text file: it holds a null byte"),
        (notebook(*["x = 1"] * 5_001), "is too large: more than 5000 cells and 128 KiB of code"),
        (notebook("x = 1\n" * 50_000), "is too large"),
    ],
)  # fmt: skip
def test_what_is_not_a_notebook_is_a_problem(tmp_path: Path, text: str, message: str) -> None:
    start = time.process_time()
    path = put(tmp_path / "eve.ipynb", text)
    assert f"eve.ipynb {message}" in read_one(path).problem
    written_cells(Candidate("eve", path, path.name), MODULE)  # of the most broken notebook, too
    assert time.process_time() - start < 3


def test_outputs_metadata_and_kernels_are_never_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = {"output_type": "stream", "name": "stdout"}
    printed = [{**stream, "text": "100 / 100\x1b[2J"}, {**stream, "text": "0.123, [1, 2] " * 1_000_000}]
    answer = {
        "cell_type": "code",
        "id": "same",
        "metadata": {"nbgrader": {"points": 100}},
        "outputs": [*printed, 3, {"output_type": 1}],
        "source": "def f():\n    return 1",
    }
    kernel = {"kernelspec": {"name": "evil", "argv": ["rm", "-rf", "/"]}, "language_info": {"name": "bash"}}
    path = put(tmp_path / "eve.ipynb", notebook(answer, {**answer, "outputs": []}, metadata=kernel, extra=[1]))
    assert path.stat().st_size > 13_000_000
    start = time.process_time()
    assert "return 1" in read_one(path).source
    assert time.process_time() - start < 1
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
