"""From a solution file to a graded assignment: what `new` reads, writes and refuses; the walk-through, followed."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from example_course import example_course
from in_process import autograder_in_process as run
from places import KIT
from toy_kit import toy_kit

from autograder.authoring.beginning import changes, example
from autograder.authoring.beginning.likely_mistakes import candidates
from autograder.authoring.beginning.signatures import read_solution, solution_of
from autograder.authoring.beginning.texts import marked
from autograder.authoring.catalogue import Correct
from autograder.authoring.exam import mutants
from autograder.authoring.exam.contract import read_contract
from autograder.authoring.handout.independence import not_independent
from autograder.authoring.proofreading.proofread import reading_faults
from autograder.authoring.renaming import renaming
from autograder.cli.authoring import _asked, _asked_what_it_answers
from autograder.grading.assignments import find_assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import read_report

GUIDE = (KIT / "fixtures" / "README.md").read_text(encoding="utf-8")
WALK = GUIDE.partition("\n## Your own, in ten minutes\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```\n", WALK, re.DOTALL | re.MULTILINE)
NAME = example.NAME
TORCH = '''\
import torch


def energy(x, weight=0.5):
    """Return the weighted sum of squares of each row.

    x        float[row column]
    weight   float   above 0; ValueError where it is not
    """
    if weight <= 0:
        raise ValueError("weight should be above 0")
    return weight * (x * x).sum(dim=1)
'''
PLAIN = '''\
def bisection(f, low, high, steps=30):
    """Return a zero of f between low and high, after so many halvings.

    f      function
    low    float   from -1 to 0
    high   float   from 2 to 3
    """
    for _ in range(steps):
        middle = (low + high) / 2
        if f(middle) * f(high) <= 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def summary(values: list[float]):
    """Return mean and range."""
    return {"mean": sum(values) / len(values), "range": max(values) - min(values)}


def shouted(text: str):
    """Return the text in capitals."""
    return text.upper()
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `new --example` ran, and nothing else."""
    root, said = example_course(tmp_path_factory)
    assert "4 items" in said
    assert "is A DRAFT: the oracle of softmax, discounted_return, incremental_mean is the solution itself" in said
    return root


@pytest.fixture
def course(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "course")


# What is written


def test_what_new_writes_has_no_fault_and_is_nothing_but_its_three_folders(made: Path) -> None:
    assert sorted(path.name for path in made.iterdir()) == ["fixtures", "handout", "solution"]
    assert reading_faults(made / "fixtures" / NAME) == []
    assert sum(item.points for item in find_assignment(made).items) == 100


def test_the_example_takes_220_own_lines_at_most_without_solution_and_oracle(made: Path) -> None:
    names = ["items.toml", "cases.py", "mistakes.py", "probes.py", "contract.toml"]
    texts = [(made / "fixtures" / NAME / name).read_text() for name in names]
    texts.append((made / "solution" / NAME / "README.md").read_text())
    assert sum(len(text.splitlines()) for text in texts) <= 220


def test_students_write_what_stood_in_the_bodies_of_the_solution(made: Path) -> None:
    text = (made / "handout" / NAME / f"{NAME}.py").read_text()
    assert text.count("raise NotImplementedError") == 3
    assert "Return the probabilities that logits stand for." in text
    assert "np.exp" not in text


def test_a_draft_is_not_released_to_students_until_each_oracle_is_said_to_be_independent(course: Path) -> None:
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


def test_each_sentence_of_the_docstrings_is_a_clause_with_mistakes_that_selfcheck_finds_caught(course: Path) -> None:
    contract = read_contract(find_assignment(course))
    assert contract is not None
    assert [clause.sentence for clause in contract.clauses if clause.function == "incremental_mean"] == [
        "Return the estimate after each reward",
        "it begins at 0 and moves a share step_size towards the reward",
        "rewards float[step]",
        "step_size float from 0 to 1",
        "returns float[step]",
    ]
    assert contract.drafts == ()
    done = run(course, "selfcheck", "--jobs", "1", "--json")
    assert done.returncode == 0, done.stderr
    (told,) = json.loads(done.stdout)["assignments"]
    assert told["clauses"] == {"all": 14, "tested": 14, "not_graded": 0}


def test_changed_parameters_and_habits_are_in_the_catalogue_with_a_hint(made: Path) -> None:
    text = (made / "fixtures" / NAME / "mistakes.py").read_text()
    assert '"softmax-temperature-ignored", "What is temperature for? Try two different ones."' in text
    assert '"softmax-truncation", "Which numbers here may have a fraction?"' in text


def test_a_sentence_without_a_mistake_is_a_note_while_its_function_is_a_draft_and_refused_by_release(
    course: Path,
) -> None:
    path = course / "fixtures" / NAME / "contract.toml"
    path.write_text(re.sub(r'^("returns float\[step\]" = ).*', r"\1[]", path.read_text(), flags=re.MULTILINE))
    done = run(course, "selfcheck", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    told = f"{NAME}/contract.toml:23: 'returns float[step]' has "
    assert f"{told}no mistake yet." in done.stdout
    (course / "fixtures" / NAME / "oracle.py").write_text("")
    done = run(course, "release")
    assert done.returncode == 3
    assert f"{told}neither mistakes nor a reason why it is not graded." in done.stderr
    assert run(course, "release", "--draft").returncode == 0


def test_it_grades_at_once(course: Path) -> None:
    for student, source in (("ada", "solution"), ("bela", "handout")):
        (course / "class" / student).mkdir(parents=True)
        shutil.copy(course / source / NAME / f"{NAME}.py", course / "class" / student)
    wrong = (
        (course / "class" / "ada" / f"{NAME}.py").read_text().replace("logits / temperature", "logits * temperature")
    )
    (course / "class" / "chidi").mkdir()
    (course / "class" / "chidi" / f"{NAME}.py").write_text(wrong)
    done = run(course, "grade", "class", "--out", "grades", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    reports = {name: read_report(course / "grades" / "reports" / f"{name}.json") for name in ("ada", "bela", "chidi")}
    assert [report.points for report in reports.values() if report] == [100, 0, 57]
    assert reports["chidi"].items[0].mistakes == ("softmax-multiplied",)


def test_items_prints_a_row_for_each_item(course: Path) -> None:
    rows = [line.split() for line in run(course, "items").stdout.splitlines()]
    assert ["softmax-values", "softmax", "what", "softmax", "returns", "29", "1", "1"] in rows
    assert ["all", "100", "4", "4"] in rows


@pytest.mark.long
def test_regenerate_says_which_sentences_and_mistakes_of_the_contract_there_are_not(course: Path) -> None:
    path = course / "fixtures" / NAME / "contract.toml"
    assert "selfcheck would refuse" not in run(course, "fixtures", "regenerate").stdout
    edit(path, '"Return the estimate after each reward"', '"Return the estimates after each reward"')
    edit(path, '"softmax-unchecked"', '"softmax-uncheckd"')
    told = [line for line in run(course, "fixtures", "regenerate").stdout.splitlines() if "would refuse" in line]
    assert len(told) == 3
    assert told[0].endswith("no clause of incremental_mean quotes: 'Return the estimate after each reward'.")
    assert "'Return the estimates after each reward' stands neither in the docstring of incremental_mean nor" in told[1]
    assert re.search(r"contract.toml:\d+: .* names 'softmax-uncheckd'; 'softmax-unchecked' is there", told[2])


# Renaming


@pytest.mark.long
def test_an_item_is_renamed_in_every_file_and_in_grades(course: Path) -> None:
    (course / "class" / "ada").mkdir(parents=True)
    shutil.copy(course / "solution" / NAME / f"{NAME}.py", course / "class" / "ada")
    assert run(course, "grade", "class", "--out", "grades", "--jobs", "1").returncode == 0
    (course / "grades" / "decisions.csv").write_text(
        "when,who,student,item,points,comment\n,,ada,softmax-values,1,late\n"
    )
    policy = course / "grades" / "policy.toml"
    policy.write_text('[items.softmax-values]\npoints = 3\n[excused]\nitems.ada = ["softmax-values"]\n')
    done = run(course, "rename", "softmax-values", "softmax-rows", "--grades", "grades")
    assert policy.read_text() == '[items.softmax-rows]\npoints = 3\n[excused]\nitems.ada = ["softmax-rows"]\n'
    assert re.search(r"softmax-values is softmax-rows in \d+ files? and [1-9]\d* of grades; ", done.stdout)
    assert done.returncode == 0, done.stderr
    assert "softmax-values is softmax-rows in 1 file and 4 of grades;" in done.stdout
    assert "2 pages of that grading named it and are gone: autograder grade … --out grades makes them" in done.stdout
    assert [path.name for path in (course / "grades").rglob("*.html")] == []
    assert (course / "grades" / "decisions.csv").read_text().endswith("\n,,ada,softmax-rows,1,late\n")
    assert find_assignment(course).item("softmax-rows").points == 29
    assert not (course / "fixtures" / NAME / "public" / "softmax-values.safetensors").exists()
    report = read_report(course / "grades" / "reports" / "ada.json")
    assert report is not None
    assert report.items[0].item == "softmax-rows"
    assert "softmax-rows" in (course / "grades" / "grades.csv").read_text().splitlines()[0]
    assert run(course, "release", "--draft").returncode == 0
    done = run(course, "grade", "class", "--out", "grades", "--jobs", "1", "--replace")  # by the policy, which is new
    assert done.returncode == 0, done.stderr
    assert "softmax-rows" in (course / "grades" / "feedback" / "ada.html").read_text()


@pytest.mark.long
def test_a_function_is_renamed_in_solution_cases_oracle_and_catalogue(course: Path) -> None:
    done = run(course, "rename", "softmax", "soft_maximum")
    assert re.search(r"softmax is soft_maximum in \d+ files; the fixtures", done.stdout)
    assert done.returncode == 0, done.stderr
    assert "Grades that were exported before this name it softmax still" in done.stdout
    assert find_assignment(course).functions[0] == "soft_maximum"
    assert "def soft_maximum(" in (course / "solution" / NAME / f"{NAME}.py").read_text()
    assert reading_faults(course / "fixtures" / NAME) == []
    contract = read_contract(find_assignment(course))
    assert contract is not None
    assert {clause.function for clause in contract.clauses} == {"soft_maximum", "discounted_return", "incremental_mean"}
    assert any("soft_maximum(logits)[i] = exp(" in clause.sentence for clause in contract.clauses)


def test_a_renaming_is_noted_for_whoever_has_the_old_name(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kit = toy_kit(tmp_path / "kit", tmp_path_factory)
    path = kit / "fixtures/toy/items.toml"

    def renamed(*names: str) -> dict[str, str]:
        for old, new in itertools.pairwise(names):
            for changed, text in renaming(find_assignment(kit), old, new, None).files.items():
                changed.write_text(text)
        assert reading_faults(kit / "fixtures/toy") == []
        return {old: new for old, (new, _) in find_assignment(kit).renamed.items()}

    assert renamed("ramp", "slope", "rise") == {"ramp": "rise", "slope": "rise"}
    assert renamed("rise", "ramp") == {"rise": "ramp", "slope": "ramp"}
    assert renamed("ramp-values", "slope-values")["ramp-values"] == "slope-values"
    assert find_assignment(kit).item("ramp-values").id == "slope-values"
    assert path.read_text().count("[[renamed]]") == 4


def test_the_oracles_gradient_of_a_function_is_renamed_with_it_unless_it_is_a_function_of_its_own(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kit = toy_kit(tmp_path / "kit", tmp_path_factory)
    oracle, module = kit / "fixtures/toy/oracle.py", kit / "solution/toy/toy.py"
    oracle.write_text(f"{oracle.read_text()}\n\ndef ramp_gradient(x, factor): ...\n\n\ndef ramp_gradients(): ...\n")
    renamed = renaming(find_assignment(kit), "ramp", "slope", None).files[oracle]
    assert "def slope_gradient(x" in renamed
    assert "def ramp_gradients(" in renamed
    module.write_text(f"{module.read_text()}\n\ndef ramp_gradient(x, factor): ...\n")
    assert "def ramp_gradient(x" in renaming(find_assignment(kit), "ramp", "slope", None).files[oracle]


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "to", "told"),
    [
        ("unheard-of", "other", "There is no item and no graded function 'unheard-of'"),
        ("softmax-values", "softmax-errors", "is the name of another one"),
        ("softmax-values", "soft max", "An item's id is made of small letters"),
        ("softmax", "soft-max", "no name of a function"),
        ("softmax", "incremental_mean", "is the name of another one"),
    ],
)
def test_a_name_that_will_not_do_is_refused_before_anything_is_written(
    made: Path, old: str, to: str, told: str
) -> None:
    before = (made / "fixtures" / NAME / "items.toml").read_bytes()
    done = run(made, "rename", old, to)
    assert done.returncode == 2
    assert told in done.stderr
    assert (made / "fixtures" / NAME / "items.toml").read_bytes() == before


# What is read


def test_docstrings_annotations_and_defaults_say_what_arguments_are(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import numpy as np\n"
        "def f(a, b: int, c=0.5, d=True, e: np.ndarray = None, g=None, h='text'):\n"
        '    """Return.\n\n    a   float[batch trial]\n    e : ndarray of shape (n, m)\n'
        '    g   function\n    c   from 0 to 1\n    """\n'
        "    return a\n"
    )
    (function,) = read_solution(tmp_path / "s.py").functions
    assert [(one.kind, one.axes) for one in function.arguments] == [
        ("array", ("batch", "trial")), ("whole", ()), ("number", ()), ("flag", ()), ("array", ("n", "m")),
        ("function", ()), ("text", ()),
    ]  # fmt: skip
    assert function.arguments[2].range == (0.1, 0.9)


def test_what_the_body_does_with_an_argument_and_what_its_paragraph_says_of_its_numbers_is_read() -> None:
    text = (
        "def f(g, n, i, h, p):\n"
        '    """Return.\n\n    i   int[step]\n    h : float\n        must be positive\n'
        '    p   probabilities[action]\n    """\n'
        "    return sum(g(k) for k in range(n))\n"
    )
    (function,) = solution_of(text, Path("s.py")).functions
    assert [one.kind for one in function.arguments] == ["function", "whole", "array", "number", "array"]
    assert [one.likely for one in function.arguments] == ["", "", "whole", "positive", "probabilities"]


def test_bodies_without_markers_are_marked_below_their_docstring() -> None:
    text = marked(solution_of('def f(x):\n    """Return x."""\n    y = x\n    return y\n\n\nA = 1\n', Path("s.py")))
    assert text == (
        'def f(x):\n    """Return x."""\n'
        "    ### BEGIN SOLUTION\n    y = x\n    return y\n    ### END SOLUTION\n\n\nA = 1\n"
    )
    assert marked(solution_of(text, Path("s.py"))) == text


def test_likely_mistakes_are_each_one_line_that_python_can_read() -> None:
    solution = solution_of(example.SOLUTION, Path("s.py"))
    for function in solution.functions:
        correct = Correct.from_solution(example.SOLUTION, function.name)
        found = list(candidates(correct.source, function))
        assert len({one.slug for one in found}) == len(found) > 3
        for one in found:
            compile(one.text(correct.source), "mistake", "exec")
            assert one.text(correct.source) != correct.source


def test_every_habit_that_the_exam_knows_has_a_hint_for_the_catalogue() -> None:
    assert changes.HABITS.keys() == mutants.HABITS.keys()
    assert all(hint.endswith("?") for hint in changes.HABITS.values())


def test_a_person_is_asked_one_question_at_a_time_with_what_is_taken_otherwise() -> None:
    solution = solution_of("def f(a, n):\n    return a * n\n\n\ndef g(x):\n    return x\n", Path("s.py"))
    with CliRunner().isolation(input="A title\ng h\nf\n\nwhole\n\n") as (out, *_):
        found, title = _asked(solution, "S")
    assert title == "A title"
    assert [[(one.kind, one.axes) for one in f.arguments] for f in found.functions] == [
        [("array", ("entry",)), ("whole", ())]
    ]
    asked = out.getvalue().decode()
    assert "Title [S]" in asked
    assert "Functions to grade [f g]" in asked
    assert "Some of: f g." in asked


def test_a_person_is_asked_what_a_function_answers_that_answered_nothing() -> None:
    text = "def f(x: list, n: int, low: float, side: str):\n    return x\n"
    (function,) = solution_of(text, Path("s.py")).functions
    with CliRunner().isolation(input="great\npositive\n2\n4\n-1\n0.5\nup, down\n") as (out, *_):
        x, n, low, side = _asked_what_it_answers(function).arguments
    assert (x.likely, n.range, low.range, side.words) == ("positive", (2, 4), (-1, 0.5), ("up", "down"))
    assert "low of f: from [1]" in out.getvalue().decode()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "defines no function"),
        ("def f(:\n", "s.py:1: not Python"),
        ("def größe(x):\n    return x\n", "s.py:1: größe cannot be graded: its name is one of ids and files"),
        ("async def f(x):\n    return x\n\n\nclass C: ...\n", "nothing to grade in f (async), C (a class)"),
        ("def f(*x):\n    return x\n", "f takes as many arguments as one likes (x): a case names"),
    ],
)
def test_a_file_that_cannot_be_an_assignment_is_refused(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        solution_of(text, Path("s.py"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new",), "Give a name and a solution"),
        (("new", "Great Name", "--from", "s.py"), "'Great Name' cannot be a module's name"),
        (("new", NAME, "--from", "s.py"), "is there already: nothing was written"),
        (("new", "other", "--from", "nowhere.py"), "nowhere.py cannot be read"),
    ],
)
def test_what_new_cannot_begin_is_refused_in_a_sentence(made: Path, words: tuple[str, ...], told: str) -> None:
    done = run(made, *words)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.long
def test_a_function_that_answers_nothing_is_refused_with_what_it_said_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("def f(x):\n    return x.unheard_of\n")
    done = run(tmp_path, "new", "lost", "--from", "s.py")
    assert done.returncode == 2
    assert "f answers nothing that was tried: AttributeError" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.py"]


# Other values


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "items"),
    [
        (TORCH, ["energy-values", "energy-gradient", "energy-errors"]),
        (PLAIN, ["bisection-values", "summary-values", "shouted-values"]),
    ],
    ids=["torch", "plain Python"],
)
def test_tensors_gradients_functions_dictionaries_and_text_are_graded(
    tmp_path: Path, source: str, items: list[str]
) -> None:
    (tmp_path / "s.py").write_text(source)
    done = run(tmp_path, "new", "made", "--from", "s.py", "--yes")
    assert done.returncode == 0, done.stderr
    assert [item.id for item in find_assignment(tmp_path).items] == items
    (tmp_path / "class" / "ada").mkdir(parents=True)
    shutil.copy(tmp_path / "solution" / "made" / "made.py", tmp_path / "class" / "ada")
    assert run(tmp_path, "grade", "class", "--out", "grades", "--jobs", "1").returncode == 0
    report = read_report(tmp_path / "grades" / "reports" / "ada.json")
    assert report is not None
    assert report.points == 100


@pytest.mark.long
def test_a_default_that_is_another_one_loses_points(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(TORCH)
    assert run(tmp_path, "new", "made", "--from", "s.py", "--yes").returncode == 0
    fixtures = tmp_path / "fixtures" / "made"
    assert "energy-case-brief" in (fixtures / "items.toml").read_text()
    assert "# def energy(x, weight=0.5): ...\n" in (fixtures / "oracle.py").read_text()
    told = run(tmp_path, "selfcheck", "--jobs", "1").stdout
    assert "The oracle of energy is the solution itself" in told
    assert "(parameter:weight-default)" not in told


@pytest.mark.long
def test_new_says_which_function_answers_the_same_in_all_its_cases(tmp_path: Path) -> None:
    symmetric = """\
import numpy as np


def is_symmetric(matrix):
    \"\"\"Return whether it is.

    matrix   float[row column]
    \"\"\"
    return bool(matrix.shape[0] == matrix.shape[1] and np.allclose(matrix, matrix.T))


def mean(values):
    \"\"\"Return it.

    vaules   float[entry]
    \"\"\"
    return values.mean()
"""
    (tmp_path / "s.py").write_text(symmetric)
    done = run(tmp_path, "new", "made", "--from", "s.py", "--yes")
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if "have the same answer" in line]
    assert told == [
        "All cases of is_symmetric have the same answer: add one to fixtures/made/cases.py that has another."
    ]
    assert "The docstring of mean has 'vaules' where 'values' is an argument: that was not read.\n" in done.stdout
    assert [item.title for item in find_assignment(tmp_path).items] == [
        "what is_symmetric returns",
        "what mean returns",
    ]


# The guide


@pytest.mark.long
def test_the_guides_walk_through_is_followed_to_the_letter(tmp_path: Path) -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert " ".join(kinds) == "sh text python sh python python toml python python toml python python toml toml sh"
    texts = [text for kind, text in BLOCKS if kind != "text"]
    first, oracle, second, case, marked, item, mistake = texts[:7]
    function, one_more, cases, its_oracle, contract, costs, last = texts[7:]
    fixtures = tmp_path / "fixtures" / NAME
    shell(tmp_path, first)
    (fixtures / "oracle.py").write_text(oracle)
    printed = shell(tmp_path, second)
    assert "three_functions does not pass its exam" in printed
    assert "(habit:in-place): estimate = estimate + step_size * (reward - estimate) → estimate += " in printed
    assert f"mark its line in solution/{NAME}/{NAME}.py, or the line above it: # equivalent: why" in printed
    append(fixtures / "cases.py", case)
    edit(tmp_path / "solution" / NAME / f"{NAME}.py", marked.partition("  # ")[0], marked.rstrip())
    append(fixtures / "items.toml", f"\n{item}")
    edit(fixtures / "items.toml", "points = 29", "points = 20")
    edit(fixtures / "mistakes.py", "\n)\n", f"\n{mistake})\n")
    append(tmp_path / "solution" / NAME / f"{NAME}.py", f"\n\n{function}")
    append(fixtures / "items.toml", f"\n{one_more}")
    edit(fixtures / "items.toml", "points = 28", "points = 18")
    append(fixtures / "cases.py", cases)
    append(fixtures / "oracle.py", f"\n\n{its_oracle}")
    append(fixtures / "contract.toml", f"\n{contract}\n{costs}")
    printed = shell(tmp_path, last)
    assert "The assignment's text does not name greedy_share." in printed
    assert "would say why" not in printed
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
