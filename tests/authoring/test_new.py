"""From a solution file to a graded assignment: what `new` reads, writes and refuses; the walk-through, followed."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_course import example_course
from in_process import autograder_in_process as run
from places import KIT

from autograder.authoring import new
from autograder.authoring.faults import todos
from autograder.authoring.handout.release import not_independent
from autograder.authoring.new import (
    EXAMPLE_NAME,
    SourceFunction,
    functions_text,
    parse_solution,
    read_solution,
    try_function,
)
from autograder.authoring.proofreading import reading_faults
from autograder.authoring.renaming import renamed_files
from autograder.grading.assignment import find_assignment
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import read_report

GUIDE = (KIT / "fixtures" / "README.md").read_text(encoding="utf-8")
WALK = GUIDE.partition("\n## Your own, in ten minutes\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```\n", WALK, re.DOTALL | re.MULTILINE)
NAME = EXAMPLE_NAME
TODOS = 8  # lines of the example


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `new --example` ran, and nothing else."""
    root, said = example_course(tmp_path_factory)
    assert "6 items" in said
    assert "is A DRAFT: the oracle of softmax, discounted_return, incremental_mean is the solution itself" in said
    assert f"{TODOS} lines say TODO" in said
    return root


@pytest.fixture
def course(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "course")


# What is written


def test_new_writes_three_folders_and_a_handout_without_the_bodies(made: Path) -> None:
    assert sorted(path.name for path in made.iterdir()) == ["fixtures", "handout", "solution"]
    assert reading_faults(made / "fixtures" / NAME) == []
    assert sum(item.points for item in find_assignment(made).items) == 100
    text = (made / "handout" / NAME / f"{NAME}.py").read_text()
    assert text.count("raise NotImplementedError") == 3
    assert "Return the probabilities that logits stand for." in text
    assert "np.exp" not in text


def test_each_todo_is_listed_with_file_and_line(made: Path) -> None:
    listed = [todo.text.removeprefix(f"fixtures/{NAME}/").split(":", 2) for todo in todos(made / "fixtures" / NAME)]
    assert len(listed) == TODOS
    assert {name for name, _, _ in listed} == {"functions.py", "items.toml", "mistakes.py"}
    for name, line, text in listed:
        assert text in (made / "fixtures" / NAME / name).read_text().splitlines()[int(line) - 1]


def test_draft_is_not_released_until_each_oracle_is_independent(course: Path) -> None:
    assert not_independent(find_assignment(course)) == ("softmax", "discounted_return", "incremental_mean")
    done = run(course, "release")
    assert done.returncode == 3
    assert "The oracle of softmax, discounted_return, incremental_mean is the solution itself" in done.stderr
    done = run(course, "release", "--draft", "--zip", "handout.zip")
    assert (done.returncode, (course / "handout.zip").exists()) == (2, False)
    done = run(course, "release", "--draft")
    assert "A DRAFT, not for students" in done.stdout
    (course / "fixtures" / NAME / "oracle.py").write_text("NOT_INDEPENDENT = {'softmax'}\n")
    assert not_independent(find_assignment(course)) == ("softmax",)
    (course / "fixtures" / NAME / "oracle.py").write_text("")
    assert not_independent(find_assignment(course)) == ()


def test_new_assignment_grades_at_once(course: Path) -> None:
    right = (course / "solution" / NAME / f"{NAME}.py").read_text()
    texts = {
        "ada": right,
        "bela": (course / "handout" / NAME / f"{NAME}.py").read_text(),
        "chidi": right.replace("logits / temperature", "logits * temperature"),
    }
    for student, text in texts.items():
        (course / "class" / student).mkdir(parents=True)
        (course / "class" / student / f"{NAME}.py").write_text(text)
    done = run(course, "grade", "class", "--out", "grades", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    reports = [read_report(course / "grades" / "reports" / f"{name}.json") for name in texts]
    assert [report.points for report in reports if report] == [100, 0, 71]


def test_items_prints_a_row_for_each_item(course: Path) -> None:
    rows = [line.split() for line in run(course, "items").stdout.splitlines()]
    assert ["softmax-values", "what", "softmax", "returns", "28"] in [row[:5] for row in rows]


FIRSTS = """\
def first(words: list[str]):
    return words[0]


def planted(tree: "Tree", depth=1):
    return tree.depth + depth


async def awaited(word):
    return word.upper()
"""


@pytest.fixture(scope="module")
def firsts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of one small function."""
    root = tmp_path_factory.mktemp("firsts")
    new.new_assignment(root, "firsts", "Firsts", parse_solution(FIRSTS, Path("s.py")))
    return root


def test_draw_that_the_solution_refuses_is_left_out_with_a_todo(firsts: Path) -> None:
    declared = (firsts / "fixtures" / "firsts" / "functions.py").read_text()
    assert "# TODO: no draw empty, for" in declared
    assert "IndexError: list index out of range" in declared
    assert find_assignment(firsts).items[0].draws == ("usual", "repeated", "anagrams")


def test_function_that_is_not_graded_keeps_no_other_from_it_and_its_body_from_students(firsts: Path) -> None:
    assert [item.id for item in find_assignment(firsts).items] == ["first-values"]
    handout = (firsts / "handout" / "firsts" / "firsts.py").read_text()
    assert handout.count("raise NotImplementedError") == 3
    assert "upper" not in handout


def test_replace_starts_again_and_loses_nothing(firsts: Path, tmp_path: Path) -> None:
    root = shutil.copytree(firsts, tmp_path / "course")
    solution = root / "solution" / "firsts" / "firsts.py"
    solution.with_name("notes.txt").write_text("of the author's own")
    edited = solution.read_text().replace("words[0]", "words[-1]")
    solution.write_text(edited)
    assert "--replace, which moves it" in run(root, "new", "firsts", "--from", str(solution)).stderr
    assert run(root, "new", "firsts", "--from", str(solution), "--replace").returncode == 0
    assert solution.read_text() == edited
    kept = root / "replaced" / "firsts-1"
    assert sorted(path.name for path in kept.iterdir()) == ["fixtures", "handout", "solution"]
    assert (kept / "solution" / "notes.txt").exists()
    assert not solution.with_name("notes.txt").exists()


# Renaming


@pytest.mark.long
def test_a_function_is_renamed_in_solution_cases_oracle_and_catalogue(course: Path) -> None:
    done = run(course, "rename", "softmax", "soft_maximum")
    assert re.search(r"softmax is soft_maximum in \d+ files; the fixtures", done.stdout)
    assert done.returncode == 0, done.stderr
    assert "Grades, decisions and policies made before this name it softmax still" in done.stdout
    assert find_assignment(course).functions[0] == "soft_maximum"
    assert "def soft_maximum(" in (course / "solution" / NAME / f"{NAME}.py").read_text()
    assert reading_faults(course / "fixtures" / NAME) == []
    assert "def soft_maximum_arguments(" not in (course / "fixtures" / NAME / "functions.py").read_text()


def test_a_renaming_is_noted_for_whoever_has_the_old_name(kit: Path) -> None:
    path = kit / "fixtures/toy/items.toml"

    def renamed(*names: str) -> dict[str, str]:
        for old, to in itertools.pairwise(names):
            for changed, text in renamed_files(find_assignment(kit), old, to).items():
                changed.write_text(text)
        assert reading_faults(kit / "fixtures/toy") == []
        return {old: new for old, (new, _) in find_assignment(kit).renamed.items()}

    assert renamed("ramp", "slope", "rise") == {"ramp": "rise", "slope": "rise"}
    assert renamed("rise", "ramp") == {"rise": "ramp", "slope": "ramp"}
    assert renamed("ramp-values", "slope-values")["ramp-values"] == "slope-values"
    assert find_assignment(kit).item("ramp-values").id == "slope-values"
    assert path.read_text().count("[[renamed]]") == 4


def test_the_oracles_gradient_of_a_function_is_renamed_with_it_unless_it_is_its_own(kit: Path) -> None:
    oracle, module = kit / "fixtures/toy/oracle.py", kit / "solution/toy/toy.py"
    oracle.write_text(f"{oracle.read_text()}\n\ndef ramp_gradient(x, factor): ...\n\n\ndef ramp_gradients(): ...\n")
    renamed = renamed_files(find_assignment(kit), "ramp", "slope")[oracle]
    assert "def slope_gradient(x" in renamed
    assert "def ramp_gradients(" in renamed
    module.write_text(f"{module.read_text()}\n\ndef ramp_gradient(x, factor): ...\n")
    assert "def ramp_gradient(x" in renamed_files(find_assignment(kit), "ramp", "slope")[oracle]


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("rename unheard-of other", "There is no item and no graded function 'unheard-of'"),
        ("rename softmax-values softmax-form", "is the name of another one"),
        ("rename softmax-values soft+max", "An item's id is made of small letters"),
        ("rename softmax soft-max", "no name of a function"),
        ("rename softmax incremental_mean", "is the name of another one"),
        ("rename softmax-values softmax", "is the name of another one"),
        ("new", "Give a name and a solution"),
        ("new Great-Name --from s.py", "'Great-Name' cannot be a module's name"),
        (f"new {NAME} --from s.py", "is there already: nothing was written"),
        ("new other --from nowhere.py", "nowhere.py cannot be read"),
    ],
)
def test_what_cannot_be_named_or_begun_is_refused_before_anything_is_written(made: Path, words: str, told: str) -> None:
    before = (made / "fixtures" / NAME / "items.toml").read_bytes()
    done = run(made, *words.split())
    assert done.returncode == 2
    assert told in done.stderr
    assert (made / "fixtures" / NAME / "items.toml").read_bytes() == before


# What is read

ARGUMENTS = {  # signature, docstring → its shape as `Function` declares it, the beginning of what is unsaid
    ("a", "a   float[batch trial]"): ("float[batch trial]", ""),
    ("a", "a: float32[batch, trial]"): ("float[batch trial]", ""),
    ("a", "a   int[run 2]   below action"): ("int[run 2]", ""),
    ("a: np.ndarray", "`a`   bool[pos]"): ("bool[pos]", ""),
    ("a", "a   float[]"): ("float", ""),
    ("a", "a   float   above 0, sorted"): ("float", ""),
    ("a: int", ""): ("int", ""),
    ("a: float | None = None", ""): ("float", ""),
    ("a=True", ""): ("bool", ""),
    ("a=0.5", ""): ("float", ""),
    ("a: list[float]", ""): ("float[entry]", ""),
    ("a: list[list[int]]", ""): ("int[row column]", ""),
    ("a: list[str]", ""): ("other", ""),
    ("a: dict[str, int]", ""): ("other", ""),
    ("a: str", ""): ("other", ""),
    ("a: Literal['up', 'down']", ""): ("word", ""),
    ("a", 'a   "up" or "down"'): ("word", ""),
    ("a: Callable[[float], float]", ""): ("function", ""),
    ("a", "a   function of t and y"): ("function", ""),
    ("a: int = DEFAULT", ""): ("int", "its default DEFAULT is no literal"),
    ("a=ONE", "a   int"): ("int", ""),
    ("a", ""): ("other", "nothing says what it is"),
    ("a: np.ndarray", ""): ("other", "nothing says its axes"),
    ("a", "a   float[n + 1]"): ("other", "its axes [n + 1] are no plain names"),
    ("a", "a   float[lambda]"): ("other", "its axes [lambda] are no plain names"),
    ("a=None", ""): ("other", "nothing says what it may be besides None"),
    ("a: Literal[1, 2]", ""): ("other", "no draw is known of Literal[1, 2]"),
    ("a: Tree", ""): ("other", 'no draw is known of Tree; the guide, "Other objects", says how'),
    ("rng", ""): ("other", 'no draw is known of rng; the guide, "Seeded generators"'),
    ("a: np.random.Generator", ""): ("other", 'no draw is known of np.random.Generator; the guide, "Seeded'),
    ("axes", ""): ("other", 'no draw is known of axes; the guide, "Plots and printed text"'),
    ("a: Callable[[int], None]", ""): (
        "other",
        'no draw is known of Callable[[int], None]; the guide, "Callb',
    ),
    ("a: dict[str, list]", ""): ("other", 'no draw is known of dict[str, list]; the guide, "Text, dictionar'),
    ("a", "a   list[str]   words"): ("other", ""),
    ("a", "a   list[int]   sorted"): ("int[entry]", ""),
    ("a", "a   float or None   a bound"): ("float", ""),
    ("a", "a   list[tuple[str, str]]   edges"): (
        "other",
        "no draw is known of list[tuple[str, str]]; the guide",
    ),
    ("a", "a   pd.DataFrame   rows"): ("other", 'no draw is known of pd.DataFrame; the guide, "Data frames"'),
    ("a", "a   the edges of it"): ("other", "nothing says what it is"),
    ("a: float | str", ""): ("other", "no draw is known of float | str"),
    ("a: list", ""): ("other", 'no draw is known of list; the guide, "Text, dict'),
    ("a: list[Item]", ""): ("other", 'no draw is known of list[Item]; the guide, "Other objects"'),
    ("*a", ""): ("other", 'a declaration names each argument; the guide, "Other objects", says how a driver passes *a'),
    ("**a", ""): ("other", "a declaration names each argument; "),
}


def source_of(signature: str, docstring: str, body: str = "return a") -> str:
    head = "import numpy as np\n\nONE = 1\n\n\n"
    return f'{head}def f({signature}):\n    """Return it.\n\n    {docstring}\n    """\n    {body}\n'


@pytest.mark.parametrize(("source", "shape", "unsaid"), [(key, *known) for key, known in ARGUMENTS.items()])
def test_signature_and_row_say_the_shape(source: tuple[str, str], shape: str, unsaid: str) -> None:
    (function,) = parse_solution(source_of(*source), Path("s.py")).functions
    (argument,) = function.arguments
    assert argument.shape == shape
    assert argument.unsaid.startswith(unsaid)
    assert bool(argument.unsaid) == bool(unsaid)


@pytest.mark.parametrize("margin", ["    ", "\t"])
def test_bodies_without_markers_are_marked_below_their_docstring(margin: str) -> None:
    source = f'def f(x):\n{margin}"""Return x."""\n{margin}y = x\n{margin}return y\n\n\nA = 1\n'
    text = parse_solution(source, Path("s.py")).text
    assert text == (
        f'def f(x):\n{margin}"""Return x."""\n'
        f"{margin}### BEGIN SOLUTION\n{margin}y = x\n{margin}return y\n{margin}### END SOLUTION\n\n\nA = 1\n"
    )
    assert parse_solution(text, Path("s.py")).text == text


def test_methods_and_bodies_beside_def_are_marked() -> None:
    text = parse_solution(
        "class A:\n    b: int\n    async def f(self): return 1\n\n\ndef g(x): return x\n", Path("s.py")
    ).text
    marked = ["    ### BEGIN SOLUTION", "    return x", "    ### END SOLUTION"]
    assert text.splitlines()[-4:] == ["def g(x):", *marked]
    assert text.splitlines()[2:6] == ["    async def f(self):", *(f"    {line}".replace("x", "1") for line in marked)]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("s.py", b"x = 1\n", "defines no function"),
        ("s.py", b"def f(:\n", "s.py:1: not Python"),
        ("s.py", "def größe(x):\n    return x\n".encode(), "s.py:1: größe cannot be graded: its name is one of ids"),
        (
            "s.py",
            b"async def f(x):\n    return x\n\n\nclass C: ...\n",
            'by itself; C (a class): the guide, "Classes"; f (async: an event loop needs sockets',
        ),
        ("s.py", b'def f(x):\n    """Nothing."""\n', "s.py:1: f has no body to mark"),
        ("s.py", b'def f(x):\n    "caf\xe9"\n', "s.py:1: not Python: 'utf-8' codec can't decode"),
        ("s.ipynb", b"{}", "s.ipynb is a notebook: give a Python file"),
    ],
)
def test_file_that_is_no_assignment_is_refused(name: str, data: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=re.escape(told)):
        read_solution(tmp_path / name)


# What is tried

TWO_WORDS = 'a   float[n]\n    how   "mean" or "max"'
TRIED = {  # signature, docstring, body → what a trial shows of the function
    ("a, b", "a   float[batch dim]\n    b   int[batch]", "return a[np.arange(len(b)), b]"): {
        "returns": "float[batch]", "kind": "a NumPy array",
    },
    ("a", "a   float[batch dim]", "return a.min(0), a.max(0)"): {
        "returns": {"part1": "float[dim]", "part2": "float[dim]"}, "kind": "a tuple of 2",
    },
    ("a", "a   float[batch dim]", "return {'low': a.min(0), 'sum': a.sum()}"): {
        "returns": {"low": "float[dim]", "sum": "float"}, "kind": "a dictionary",
    },
    ("a", "a   int[n]", "return np.unique(a)"): {"returns": "int[axis0]"},
    ("a", "a   float[batch dim]", "return np.zeros(len(a) + 1)"): {"returns": "float[axis0]"},
    ("a", "a   float[n]", "return a > 0"): {"returns": "bool[n]"},
    ("a, scale=2.0, clip=None, *, by=1", "a   float[n]", "return a * scale * by"): {"returns": "float[n]"},
    ("a, clip: float = None", "a   float[n]", "return a * (1 if clip is None else clip)"): {
        "returns": "float[n]", "further_draws": {"clip_none": ("clip", "None")},
    },
    ("a, how", TWO_WORDS, "return getattr(a, how)()"): {
        "returns": "float", "further_draws": {"how_max": ("how", '"max"')},
    },
    ("a: str, how='up'", "", "return a.upper() if how == 'up' else a"): {"returns": None},
    ("a: list[str]", "", "return {word: a.count(word) for word in a}"): {"returns": None},
    ("a: dict[str, int]", "", "return max(a, key=a.get)"): {"returns": None},
    ("a: int", "", "return lambda x: x + a"): {"problem": 'it returns a function; the guide, "Functions as'},
    ("f: 'Callable[[float, float], float]', a: float", "", "return f(a, 2 * a)"): {
        "returns": "float", "kind": "a number",
    },
    ("a", "a   float[n]", "a.sort()"): {"returns": {"a afterwards": "float[n]"}, "kind": "nothing"},
    ("a: list[str]", "", "a.sort()"): {"returns": {"a afterwards": "other"}, "kind": "nothing"},
    ("a", "a   float[n]", "print(a)"): {"problem": 'it returns nothing; the guide, "Plots and printed text"'},
    ("a", "a   float[n]", "return object()"): {"problem": "it returns a object"},
    ("a", "a   float[n]", "return 1j, -1j"): {
        "problem": "it returns a tuple of 2 with something in it that is no number or text; the guide"
        ', "Other objects", says how',
    },
    ("a", "a   float[n]", "return np.sqrt(a)"): {"problem": "it returns nan"},
    ("a", "a   float[n]", "return np.log(a * 0)"): {"problem": "it returns nan, which no answer equals, or what"},
    ("a", "", "return a.sum()"): {"problem": "a: nothing says what it is: write `a   float[row column]` into"},
    ("act: 'Callable[[], int]'", "", "return act(1, 2)"): {
        "problem": "TypeError: the function takes 1 arguments, x; it got 2 in line 12: return act(1, 2); the guide",
    },
    ("a: float", "", "return a.unheard_of"): {
        "problem": 'AttributeError: \'float\' object has no attribute \'unheard_of\' in line 12: return a.unheard_of; '
        'the guide, "Make it yours", has draws of one\'s own',
    },
    ("a", "", "return a()"): {"problem": 'a: no draw is known of a Callable; the guide, "Functions as arguments"'},
    ("", "", "import random; return random.random() < 0.5"): {
        "problem": 'it gives another answer when it is called again with the same arguments; the guide, "Distribu',
    },
    ("a, f: 'Callable[[float], float]'", "a   float[n]", "return f(a * np.random.random(len(a)))"): {
        "problem": "it gives another answer",
    },
}  # fmt: skip


def tried(source: str, sandbox: Sandbox) -> SourceFunction:
    solution = parse_solution(source, Path("s.py"))
    try_function(solution, solution.functions[0], sandbox)
    return solution.functions[0]


@pytest.mark.parametrize(("source", "fields"), TRIED.items())
def test_trial_shows_what_comes_back(source: tuple[str, str, str], fields: dict[str, object], sandbox: Sandbox) -> None:
    function = tried(source_of(*source), sandbox)
    problem = str(fields.get("problem", ""))
    assert function.problem.startswith(problem)
    assert bool(function.problem) == bool(problem)
    assert {name: getattr(function, name) for name in fields if name != "problem"} == {
        name: value for name, value in fields.items() if name != "problem"
    }
    compile(functions_text([function]), "functions.py", "exec")


def test_tensors_that_a_gradient_reaches_are_leaves_and_a_constant_is_a_default(sandbox: Sandbox) -> None:
    source = source_of(
        "a, b, c, by=ONE", "a   float[n]\n    b   float[n]\n    c   int[n]", "return by * a * b.detach() + c"
    )
    function = tried(source.replace("numpy as np", "torch"), sandbox)
    assert (function.leaves, function.defaults) == (["a"], {"by": 1})


def test_refusals_name_sections_that_the_guide_has() -> None:
    for section in new.SECTIONS.values():
        assert re.search(rf"^##+ {re.escape(section)}$", GUIDE, re.MULTILINE)


def test_file_that_cannot_be_loaded_is_told_as_that(sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match=r"s.py cannot be loaded: ModuleNotFoundError: No module named 'nosuch"):
        tried("import nosuchpackage\n\n\ndef f(x: int):\n    return x\n", sandbox)


# From the command line

MIXED = '''\
import torch


def energy(x, weight=0.5):
    """Return the weighted sum of squares of each row.

    x        float[row column]
    weight   float
    """
    if weight <= 0:
        raise ValueError("weight should be above 0")
    return weight * (x * x).sum(dim=1)


def masked(values, keep):
    """Return the mean of what is kept.

    values   float[batch pos]
    keep     bool[batch pos]
    """
    return (values * keep).sum(-1) / keep.sum(-1).clamp(min=1)


def moved_(x):
    """Move it.

    x   float[n]
    """
    x += 1
    return x


def planted(tree: "Tree"):
    return tree.depth


class Stack: ...
'''


@pytest.mark.long
def test_mixed_file_is_graded_as_far_as_it_answers(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(MIXED)
    done = run(tmp_path, "new", "made", "--from", "s.py")
    assert done.returncode == 0, done.stderr
    assert 'Not graded: Stack (a class): the guide, "Classes".' in done.stdout
    assert "Not graded yet: planted (tree: no draw is known of Tree; the guide" in done.stdout
    assert f"The guide is {KIT / 'fixtures' / 'README.md'}." in done.stdout
    assert [item.id for item in find_assignment(tmp_path).items] == [
        "energy-values", "energy-gradient", "energy-form", "masked-values", "masked-gradient", "masked-form",
        "moved-values", "moved-form",
    ]  # fmt: skip
    text = (tmp_path / "fixtures" / "made" / "functions.py").read_text()
    assert re.search(r'"unmodified": "[^"]*x afterwards', text)
    listed = [todo.text for todo in todos(tmp_path / "fixtures" / "made")]
    assert any("planted is not graded (tree: no draw is known of Tree; " in told for told in listed)
    assert any("which calls must raise? Your solution raises ValueError at line 12." in told for told in listed)
    assert run(tmp_path, "fixtures", "regenerate").returncode == 0
    (tmp_path / "class" / "ada").mkdir(parents=True)
    shutil.copy(tmp_path / "solution" / "made" / "made.py", tmp_path / "class" / "ada")
    assert run(tmp_path, "grade", "class", "--out", "grades", "--jobs", "1").returncode == 0
    report = read_report(tmp_path / "grades" / "reports" / "ada.json")
    assert report is not None
    assert report.points == 100


@pytest.mark.long
def test_file_that_answers_nothing_is_written_with_its_todos(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text('def planted(tree: "Tree"):\n    return tree.depth\n')
    done = run(tmp_path, "new", "made", "--from", "s.py")
    assert done.returncode == 0, done.stderr
    assert "0 items, 0 cases." in done.stdout
    assert "2 lines say TODO in fixtures/made." in done.stdout
    assert "\n[[item]]" not in (tmp_path / "fixtures" / "made" / "items.toml").read_text()
    assert "Not graded yet: planted (tree: no draw is known of Tree; " in done.stdout
    told = run(tmp_path, "selfcheck").stderr.splitlines()
    wrong = [("functions", 15), ("items", 1), ("items", 5), ("mistakes", 11)]
    assert [re.findall(r"^autograder: fixtures/made/(\w+)\.\w+:(\d+): ", line) for line in told] == [
        [(file, str(line))] for file, line in wrong
    ]
    assert "uncomment its items" in told[0]


# The guide


@pytest.mark.long
def test_walk_through_of_the_guide_is_followed_to_the_letter(tmp_path: Path) -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert " ".join(kinds) == "sh text python sh python python toml python python python python toml python sh"
    texts = [text for kind, text in BLOCKS if kind != "text"]
    first, oracle, second, far, lines, items, mistake, function, draw, declaration, one_more, its_oracle, last = texts
    fixtures = tmp_path / "fixtures" / NAME
    shell(tmp_path, first)
    (fixtures / "oracle.py").write_text(oracle)
    printed = shell(tmp_path, second)
    assert "three_functions does not pass its exam" in printed
    assert "scaled - scaled.max(axis=1, keepdims=True)) → weights = np.exp(scaled + scaled.max(" in printed
    functions = fixtures / "functions.py"
    edit(functions, "EXAM = Exam.of", f"{far}EXAM = Exam.of")
    edit(functions, '        draws={"usual": softmax_arguments},\n', lines)
    functions.write_text(re.sub(r" +# TODO: which calls.*\n.*\n", "", functions.read_text()))
    append(fixtures / "items.toml", f"\n{items}")
    edit(fixtures / "items.toml", "points = 28", "points = 14")
    edit(fixtures / "mistakes.py", "\n)\n", f"\n{mistake})\n")
    append(tmp_path / "solution" / NAME / f"{NAME}.py", f"\n\n{function}")
    edit(functions, "EXAM = Exam.of", f"{draw}EXAM = Exam.of")
    functions.write_text(functions.read_text().removesuffix(")\n") + f"{declaration})\n")
    append(fixtures / "items.toml", f"\n{one_more}")
    edit(fixtures / "items.toml", "points = 28", "points = 18")
    append(fixtures / "oracle.py", f"\n\n{its_oracle}")
    printed = shell(tmp_path, last)
    assert "The assignment's text does not name greedy_share." in printed
    reports = {name: read_report(tmp_path / "grades" / "reports" / f"{name}.json") for name in ("ada", "bela")}
    assert [report.points for report in reports.values() if report] == [100, 0]


def shell(folder: Path, commands: str) -> str:
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new, 1))
