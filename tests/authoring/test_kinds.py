"""Every kind of answer in the authors' guide: its example is built; a right answer earns all, a wrong one does not."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest
from places import KIT

from autograder.authoring.fixtures.regenerate import regenerate
from autograder.authoring.fixtures.terms import Term, regenerate_term
from autograder.authoring.proofreading import reading_faults
from autograder.grading.assignment import load_assignment
from autograder.grading.counterexamples import Drawing, simpler
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.worker.worker import FRESH_SEED
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import FixtureError

CHAPTER = (KIT / "fixtures" / "README.md").read_text(encoding="utf-8").partition("\n## What can be graded\n")[2]
SECTIONS = {text.partition("\n")[0]: text for text in CHAPTER.partition("\n## ")[0].split("\n### ")[1:]}
SECTIONS_OF_OUR_OWN = {
    "parts of several kinds": """
```python
# solution
def served(queue, limit):
    first = queue[:limit]
    del queue[:limit]
    return {"total": sum(first), "turn": {number: place for place, number in enumerate(first)}}

# functions.py
Function(
    "served",
    {"queue": "other", "limit": "int"},
    {"total": "float", "turn": None, "queue afterwards": None},
    sizes={},
    draws={"usual": lambda rng: {"queue": rng.permutation(6).tolist(), "limit": 4}},
    values="python",
)

# oracle.py
def served(queue, limit):
    turn = {number: place for place, number in zip(range(limit), queue)}
    return {"total": math.fsum(turn), "turn": turn, "queue afterwards": np.array(queue[limit:])}
```

*Laws:* `values`, `unmodified`, `signature`.
""",
    "a step in place, whatever the dtype": """
```python
# solution
def step(parameter, gradient):
    torch.sub(parameter, gradient / 8, out=parameter)

# functions.py
Function(
    "step",
    {"parameter": "float[row]", "gradient": "float[row]"},
    lambda arguments: {"parameter afterwards": "float[row]"},
    sizes={"row": (1, 2, 4)},
    draws={"usual": lambda rng, row: {"parameter": rng.uniform(1, 2, row), "gradient": rng.uniform(1, 2, row)}},
    dtypes=("float64", "float32"),
)

# oracle.py
def step(parameter, gradient):
    return parameter - 0.125 * gradient
```

*Laws:* `values`.
""",
    "counted calls for what is compared as it is": """
```python
# solution
def group_by(values, key):
    groups = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups

# functions.py
Function(
    "group_by",
    {"values": "other", "key": "function"},
    None,
    sizes={},
    draws={"usual": lambda rng: {"values": rng.permutation(6).tolist(), "key": Formula("n", "n % 2")}},
    counted=["key"],
    values="python",
)

# oracle.py
def group_by(values, key):
    numbers = values.tolist()
    keys = [key(number) for number in numbers]
    return {key: [number for number, other in zip(numbers, keys) if other == key] for key in keys}
```

*Laws:* `values`, `calls`.
""",
    "an argument that may be None": """
```python
# solution
def halves(values, out=None):
    return np.divide(values, 2, out=out)

# functions.py
Function(
    "halves",
    {"values": "float[step]", "out": "float[step]"},
    {"result": "float[step]", "out afterwards": "float[step]"},
    sizes={"step": (1, 3, 5)},
    draws={
        "usual": lambda rng, step: {"values": rng.uniform(1, 2, step), "out": np.zeros(step)},
        "without": lambda rng, step: {"values": rng.uniform(1, 2, step), "out": None},
    },
    defaults={"out": None},
    values="numpy",
)

# oracle.py
def halves(values, out=None):
    return values * 0.5, values * 0.5
```

*Laws:* `values`, `sizes`, `unmodified`, `signature`. *Draws:* `usual`, `without`.
""",
    "a list that grows": """
```python
# solution
def extend(words, more):
    words.extend(more)

# functions.py
Function(
    "extend",
    {"words": "int[word]", "more": "other"},
    {"words afterwards": None},
    sizes={"word": (1, 2, 3)},
    draws={"usual": lambda rng, word: {"words": rng.permutation(word), "more": rng.permutation(4).tolist()}},
    values="python",
)

# oracle.py
def extend(words, more):
    return [*words, *more]
```

*Laws:* `values`, `unmodified`, `state`, `signature`.
""",
    "an answer that may be None": """
```python
# solution
def place_of(word, words):
    return words.index(word) if word in words else None

# functions.py
Function(
    "place_of",
    {"word": "other", "words": "other"},
    None,
    sizes={},
    draws={
        "usual": lambda rng: {"word": "noon", "words": rng.permutation(["noon", "tea", "a", "stone"]).tolist()},
        "absent": lambda rng: {"word": "", "words": texts.word_list(rng)},
    },
    values="python",
)

# oracle.py
def place_of(word, words):
    for place, other in enumerate(words):
        if other == word:
            return place
```

*Laws:* `values`, `unmodified`, `signature`. *Draws:* `usual`, `absent`.
""",
    "dictionaries as arguments": """
```python
# solution
def sums(table):
    return [[row, sum(value for (at, _), value in table.items() if at == row)] for row in {at for at, _ in table}]

# functions.py
Function(
    "sums",
    {"table": "other"},
    None,
    sizes={},
    draws={"usual": lambda rng: {"table": {(row, column): int(rng.integers(9)) for row in (1, 2) for column in "ab"}}},
    values="python",
)

# oracle.py
def sums(table):
    return [[1, table[1, "a"] + table[1, "b"]], [2, table[2, "b"] + table[2, "a"]]]
```

*Laws:* `values`, `unmodified`, `signature`.
""",
    "one part, by its name or as it is": """
```python
# solution
def schedule(base):
    return lambda step: base / 2**step

# probes.py
@driver
def scheduled(student, base, steps):
    rate_at = student.schedule(base)
    return {"rates": {step: rate_at(step) for step in steps}}

# functions.py
Function(
    "schedule",
    {"base": "float", "steps": "other"},
    {"rates": None},
    sizes={},
    draws={"usual": lambda rng: {"base": rng.uniform(1, 2), "steps": [0, 1, 4]}},
    driver="scheduled",
)

# oracle.py
def schedule(base, steps):
    return {0: base, 1: base / 2, 4: base / steps[2:].prod() ** 2}
```

*Laws:* `values`, `unmodified`.
""",
}
EXAMPLES = SECTIONS | SECTIONS_OF_OUR_OWN
WRONG = {  # section → a part of the solution, and what a wrong answer has there
    "Changes in place": ("np.clip(values, -bound, bound, out=values)", "values = np.clip(values, -bound, bound)"),
    "Functions as arguments": ("function(start) +", "function(start) + 0 * function(start) +"),
    "Callbacks": ("    visit(name)", ""),
    "Functions as results": ("second(first(x))", "first(second(x))"),
    "Truth values, masks, None": ("if bound is None", "if not bound"),
    "Text, dictionaries, nested containers": ("setdefault(len(word), [])", "setdefault(str(len(word)), [])"),
    "Exceptions": ("LookupError", "ValueError"),
    "Other objects": ("points = {start}", "points = {Point(0, 0)}"),
    "Classes": ("self.kept = []", "self.kept = ['']"),
    "Modules of torch": ("self.weight.T", "self.weight.detach().T"),
    "Seeded generators": ("rng.permutation(values)", "np.random.permutation(values)"),
    "Distributions": ("rng.random() < epsilon", "rng.random() < epsilon / 2"),
    "Plots and printed text": ("range(1, len(rewards) + 1)", "range(len(rewards))"),
    "Data frames": (".sum()", ".max()"),
    "parts of several kinds": ("    del queue[:limit]", ""),
    "a step in place, whatever the dtype": ("out=parameter", "out=parameter.double()"),
    "counted calls for what is compared as it is": ("key(value), []", "(key(value), key(value))[0], []"),
    "an argument that may be None": ("out=out", ""),
    "a list that grows": ("extend(more)", "extend(extend.__dict__.setdefault(len(words), more))"),  # in further calls
    "an answer that may be None": ("else None", "else -1"),
    "one part, by its name or as it is": ("2**step", "(step + 1)"),
    "dictionaries as arguments": ("if at == row", "if at == str(row)"),
}
IMPORTS = {  # of each file, besides those that the chapter leaves out
    "solution": "from dataclasses import dataclass\n",
    "probes.py": "import contextlib\nimport io\n\nfrom autograder.sandbox.worker.calling import again, call, driver\n",
    "functions.py": "from autograder.authoring.calls import Formula\n"
    "from autograder.authoring.laws import Error, Exam, Function, texts\n\nfrom . import oracle\n",
    "oracle.py": "import math\nimport re\n",
}
PACKAGES = {"np": "import numpy as np", "torch": "import torch", "pandas": "import pandas",
            "Figure": "from matplotlib.figure import Figure"}  # fmt: skip


def files_of(section: str) -> dict[str, str]:
    """The files that the code block of a section holds, with their imports."""
    block = re.findall(r"^```python\n(.*?)^```\n", section, re.DOTALL | re.MULTILINE)[0]
    parts = re.split(r"^# (solution|\w+\.py)\n", block, flags=re.MULTILINE)[1:]
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    for name, text in files.items():
        used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
        files[name] = "\n".join([IMPORTS[name], *(line for word, line in PACKAGES.items() if word in used), text])
    return {"probes.py": IMPORTS["probes.py"], **files}


def named(section: str, what: str) -> list[str]:
    line = re.search(rf"\*{what}:\*((?: `\w+`[,.])+)", section)
    return re.findall(r"`(\w+)`", line[1]) if line else []


def built(kind: str, section: str, tmp_path: Path) -> tuple[Path, str]:
    """Write the assignment of a section; return its folder and the text of its solution."""
    files = files_of(section)
    packages = [name for name in ("torch", "numpy", "matplotlib", "pandas") if f"import {name}" in str(files)
                or f"from {name}" in str(files)]  # fmt: skip
    if not all(map(importlib.util.find_spec, packages)):
        pytest.skip(f"{', '.join(packages)} are not all installed")
    declaration = files["functions.py"].partition("\nFunction(")
    function = ast.literal_eval(declaration[2].strip().partition(",")[0])
    folder, solution = tmp_path / "fixtures" / "kind", tmp_path / "solution" / "kind" / "kind.py"
    folder.mkdir(parents=True)
    solution.parent.mkdir(parents=True)
    solution.write_text(files["solution"])
    item = {"id": "all", "function": function, "title": kind, "points": 10, "hint": "Read it again.",
            "laws": named(section, "Laws"), "draws": named(section, "Draws")}  # fmt: skip
    (folder / "items.toml").write_text(
        f'assignment = "kind"\ntitle = "Kind"\nmodule = "kind"\npackages = {packages}\n[[item]]\n'
        + "".join(f"{key} = {value!r}\n" for key, value in item.items())
    )
    (folder / "mistakes.py").write_text("MISTAKES = ()\n")
    (folder / "functions.py").write_text(f"{declaration[0]}\nEXAM = Exam.of(oracle, Function({declaration[2]})\n")
    for name in ("oracle.py", "probes.py"):
        (folder / name).write_text(files[name])
    return folder, files["solution"]


def check_graded(folder: Path, stored: Path, kind: str, solution: str, sandbox: Sandbox) -> None:
    """Hold that the solution earns all by the cases in `stored`, and the wrong answer less and a reason."""
    assignment = load_assignment(folder)
    grader = Grader.of(assignment, read_fixtures(assignment, folder=stored))
    right, wrong = WRONG[kind]
    assert solution.count(right) == 1
    ada, bela = (
        grader.grade(Submission("ada", "ada/kind.py", "", text), sandbox)
        for text in (solution, solution.replace(right, wrong))
    )
    assert ada.points == 10, ada.items[0].message
    assert bela.points is not None
    assert bela.points < 10
    assert bela.items[0].message


@pytest.mark.parametrize("kind", WRONG)
def test_example_of_a_kind_tells_right_from_wrong(kind: str, tmp_path: Path, sandbox: Sandbox) -> None:
    folder, solution = built(kind, EXAMPLES[kind], tmp_path)
    faults = [fault.text for fault in reading_faults(folder)]
    assert [text for text in faults if "README" not in text and "marked" not in text] == []
    regenerate(load_assignment(folder), folder, sandbox=sandbox)
    check_graded(folder, folder, kind, solution, sandbox)


@pytest.mark.long
@pytest.mark.parametrize("kind", WRONG)
def test_example_of_a_kind_goes_through_a_term(kind: str, tmp_path: Path, sandbox: Sandbox) -> None:
    folder, solution = built(kind, EXAMPLES[kind], tmp_path)
    regenerate(load_assignment(folder), folder, sandbox=sandbox)
    (tmp_path / "term").mkdir()
    regenerate_term(
        load_assignment(folder), tmp_path / "term", Term("2027-spring", b"a secret of this course"), sandbox
    )
    check_graded(folder, tmp_path / "term", kind, solution, sandbox)


def test_driver_that_fails_hidden_cases_alone_is_shown_to_paste(tmp_path: Path, sandbox: Sandbox) -> None:
    folder, solution = built("Functions as results", EXAMPLES["Functions as results"], tmp_path)
    regenerate(load_assignment(folder), folder, sandbox=sandbox)
    wrong = solution.replace("second(first(x))", "second(first(x)) + (1 < x < 1.2) * (x != 1.1)")
    grader = Grader.of(load_assignment(folder), read_fixtures(load_assignment(folder)))
    (item,) = grader.grade(Submission("ada", "ada/kind.py", "", wrong), sandbox).items
    assert item.fails_unseen
    assert "composed = compose(first, second)\n[composed(value) for value in values]\n" in item.counterexample


def test_counterexample_of_a_statistic_is_a_usual_call(tmp_path: Path) -> None:
    folder, _ = built("Distributions", EXAMPLES["Distributions"], tmp_path)
    drawing = Drawing.of(load_assignment(folder))
    assert drawing is not None
    trial = drawing.trial("all", "a submission", 0)
    assert trial.sizes == {"action": 4}
    assert simpler(trial) == []


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "told"),
    [
        ("Truth values, masks, None", '    defaults={"bound": None},\n', "", "no case leaves out bound of above"),
        (
            "Truth values, masks, None",
            '    falsy={"bound": 0.0},\n',
            "",
            "all has the law falsy, which adds no case to",
        ),
        ("a list that grows", "return [*words, *more]", "[*words, *more]", "the oracle extend returns nothing"),
        (
            "Callbacks",
            "@driver\ndef walk_visits",
            "def walk_visits",
            "walk_visits is no driver yet: @driver on the line above",
        ),
        (
            "Functions as arguments",
            '"start": rng.uniform(), ',
            "",
            "what is drawn is function, stop: the same arguments in",
        ),
        (
            "an answer that may be None",
            "return place\n",
            "return {place}\n",
            "a set, .*: text, truth values, None, numbers",
        ),
        (
            "Truth values, masks, None",
            "return values > bound",
            "return bool((values > bound).all())",
            "None in place of",
        ),
    ],
)
def test_declaration_that_could_not_grade_is_refused(
    kind: str, right: str, wrong: str, told: str, tmp_path: Path, sandbox: Sandbox
) -> None:
    assert right in EXAMPLES[kind]
    folder, _ = built(kind, EXAMPLES[kind].replace(right, wrong), tmp_path)
    with pytest.raises(FixtureError, match=told):
        regenerate(load_assignment(folder), folder, sandbox=sandbox)


def test_each_kind_of_the_chapter_is_tried() -> None:
    assert EXAMPLES.keys() == WRONG.keys()
    assert f" {FRESH_SEED}:" in SECTIONS["Seeded generators"]
