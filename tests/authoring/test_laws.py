"""Laws, on functions of their own: what each must catch, at the cost of its own item alone, and what earns all."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from places import KIT
from toy_kit import made_once, regenerate_into

from autograder.authoring.laws.declaration import SHAPE
from autograder.authoring.laws.laws import LAWS
from autograder.grading.assignment import load_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

FUNCTIONS = '''\
"""A function of tensors, one of arrays, one of a list in lists, one of a function."""

from autograder.authoring.laws import Error, Exam, Function

from . import oracle

TABLE = "float[batch trial]"


def ratios(rng, batch, trial):
    old = rng.uniform(-3, -1, (batch, trial))
    shift = rng.uniform(0.3, 0.6, (batch, trial)) * rng.choice([-1, 1], (batch, trial))
    deltas = rng.uniform(1, 2, (batch, trial)) * rng.choice([-1, 1], (batch, trial))
    return {"log_probs": old + shift, "old_log_probs": old, "deltas": deltas, "mode": "clipped", "epsilon": 0.4}


def rewards(rng, batch, trial):
    return {"rewards": rng.uniform(1, 9, (batch, trial)), "weights": rng.uniform(1, 2, trial), "scale": 1.5}


def groups(rng, group, pos):
    words = [["ab" * int(n) for n in row] for row in rng.integers(1, 9, (group, pos))]
    return {"groups": words, "least": int(rng.integers(3, 12))}


def intervals(rng, steps):
    return {"f": Formula("x", "x * x + 1"), "low": float(rng.uniform(0, 1)), "width": float(rng.uniform(1, 2))}


EXAM = Exam.of(
    oracle,
    Function(
        "surrogate",
        {"log_probs": TABLE, "old_log_probs": TABLE, "deltas": TABLE, "mode": "word", "epsilon": "float"},
        "float[]",
        sizes={"batch": (1, 3, 5), "trial": (1, 4, 6)},
        draws={"usual": ratios},
        dtypes=("float64", "float32"),
        leaves=["log_probs"],
        constants=["old_log_probs", "deltas"],
        words={"mode": ["clipped", "unclipped"]},
        defaults={"epsilon": 0.2},
        falsy={"epsilon": 0.0},
        errors={"negative": Error({"epsilon": -0.1}, ["epsilon"])},
    ),
    Function(
        "standardized",
        {"rewards": TABLE, "weights": "float[trial]", "scale": "float"},
        TABLE,
        sizes={"batch": (1, 3, 5), "trial": (1, 4, 6)},
        draws={"usual": rewards},
        values="numpy",
        kind="a NumPy array",
        dtypes=("float64", "float32"),
        defaults={"scale": 2.0},
        falsy={"scale": 0.0},
        errors={"negative": Error({"scale": -1.0}, ["scale"])},
    ),
    Function(
        "selected",
        {"groups": "other", "least": "int"},
        None,
        sizes={"group": (1, 3, 5), "pos": (1, 4, 6)},
        draws={"usual": groups},
        values="python",
        kind="a list",
        falsy={"least": 0},
        errors={"negative": Error({"least": -1}, ["least"])},
    ),
    Function(
        "midpoint",
        {"f": "function", "low": "float", "width": "float"},
        "float[]",
        sizes={"steps": (1, 3, 5)},
        draws={"usual": intervals},
        values="python",
        counted=["f"],
        kind="a number",
    ),
)
'''.replace("from . import oracle", "from autograder.authoring.calls import Formula\n\nfrom . import oracle")

ORACLE = """\
import math

import numpy as np


def _terms(log_probs, old_log_probs, deltas, mode, epsilon=0.2):
    for new, old, delta in zip(log_probs.flat, old_log_probs.flat, deltas.flat):
        ratio = math.exp(new - old)
        clipped = min(max(ratio, 1 - epsilon), 1 + epsilon) * delta
        is_cut = mode == "clipped" and clipped < ratio * delta
        yield (clipped if is_cut else ratio * delta), (0.0 if is_cut else ratio * delta)


def surrogate(log_probs, old_log_probs, deltas, mode, epsilon=0.2):
    return -math.fsum(term for term, _ in _terms(log_probs, old_log_probs, deltas, mode, epsilon)) / log_probs.size


def surrogate_gradient(log_probs, old_log_probs, deltas, mode, epsilon=0.2):
    slopes = [slope for _, slope in _terms(log_probs, old_log_probs, deltas, mode, epsilon)]
    return -np.array(slopes).reshape(log_probs.shape) / log_probs.size


def standardized(rewards, weights, scale=2.0):
    means = [math.fsum(row) / len(row) for row in rewards.tolist()]
    return np.array([[(x - scale * m) * w for x, w in zip(row, weights)] for row, m in zip(rewards.tolist(), means)])


def selected(groups, least):
    return [sorted(word for word in group if not len(word) < least) for group in groups]


def midpoint(f, low, width):
    return width * f((2 * low + width) / 2)
"""

SOLUTION = '''\
"""Four functions."""

import numpy as np
import torch


def surrogate(log_probs, old_log_probs, deltas, mode, epsilon=0.2):
    """Return minus the mean surrogate."""
    ### BEGIN SOLUTION
    if mode not in ("clipped", "unclipped"):
        raise ValueError(f"unknown mode {mode!r}")
    if epsilon < 0:
        raise ValueError("epsilon is below 0")
    ratio = torch.exp(log_probs - old_log_probs.detach())
    weighted = ratio * deltas.detach()
    if mode == "clipped":
        weighted = torch.minimum(weighted, ratio.clamp(1 - epsilon, 1 + epsilon) * deltas.detach())
    return -weighted.mean()
    ### END SOLUTION


def standardized(rewards, weights, scale=2.0):
    """Return weighted differences from the scaled mean of a row."""
    ### BEGIN SOLUTION
    if scale < 0:
        raise ValueError("scale is below 0")
    return (rewards - scale * rewards.mean(axis=1, keepdims=True)) * weights
    ### END SOLUTION


def selected(groups, least):
    """Return each group's words of at least so many letters, sorted."""
    ### BEGIN SOLUTION
    if least < 0:
        raise ValueError("least is below 0")
    return [sorted(word for word in group if len(word) >= least) for group in groups]
    ### END SOLUTION


def midpoint(f, low, width):
    """Return the area of the rectangle at the middle."""
    ### BEGIN SOLUTION
    return width * f(low + width / 2)
    ### END SOLUTION
'''

JUDGED = {
    "surrogate": [law for law in LAWS if law not in ("kind", "calls", "callables")],
    "standardized": [law for law in LAWS if law not in ("gradient", "constants", "device", "calls", "callables")],
    "selected": ["values", "kind", "unmodified", "sizes", "state", "signature", "falsy", "errors"],
    "midpoint": ["values", "kind", "calls", "callables", "signature"],
}


def _items() -> str:
    laws = [(function, law) for function, several in JUDGED.items() for law in several]
    head = 'assignment = "laws"\ntitle = "Laws"\nmodule = "laws"\n'
    return head + "".join(
        f'\n[[item]]\nid = "{function}-{law}"\nfunction = "{function}"\ntitle = "{law}"\npoints = 2\n'
        f'hint = "What does {law} say?"\nlaws = ["{law}"]\n'
        for function, law in laws
    )


TEXTS = {
    "fixtures/laws/items.toml": _items(),
    "fixtures/laws/functions.py": FUNCTIONS,
    "fixtures/laws/oracle.py": ORACLE,
    "fixtures/laws/mistakes.py": "MISTAKES = ()\n",
    "fixtures/laws/probes.py": (KIT / "fixtures/grpo_in_practice/probes.py").read_text(encoding="utf-8"),
    "solution/laws/laws.py": SOLUTION,
    "solution/laws/README.md": "# Laws\n\n<!-- points:begin -->\n<!-- points:end -->\n",
}


def _written(texts: Mapping[str, str], folder: Path) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    regenerate_into(folder / "fixtures/laws", folder / "fixtures/laws")
    return folder


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Grader:
    folder = made_once("laws-course", functools.partial(_written, TEXTS), tmp_path_factory)
    assignment = load_assignment(folder / "fixtures/laws")
    return Grader.of(assignment, read_fixtures(assignment), counterexamples=False)


def lost(grader: Grader, sandbox: Sandbox, function: str, answer: str) -> set[str]:
    """Grade the solution with that answer after it; the laws whose items of that function lose points."""
    items = [item for item in grader.assignment.items if item.function == function]
    source = f"{SOLUTION}\n\n{answer}"
    report = grader.grade(Submission("ada", "ada/laws.py", "", source), sandbox, items)
    return {item.title for item in report.items if item.points != item.max_points}


WHOLE = {name: SOLUTION[SOLUTION.index(f"def {name}(") :].partition("    ### END")[0] for name in JUDGED}
CHECKS = {"surrogate": "    if mode not", "standardized": "    if scale < 0", "selected": "    if least < 0"}
RESULT = {
    "surrogate": "-weighted.mean()",
    "standardized": "(rewards - scale * rewards.mean(axis=1, keepdims=True)) * weights",
    "selected": "[sorted(word for word in group if len(word) >= least) for group in groups]",
    "midpoint": "width * f(low + width / 2)",
}


Habit = Callable[[str], str]  # of a function, its text


def but(*changes: tuple[str, str], returns: str = "", first: str = "", above: str = "") -> Habit:
    """Write a function of the solution with changes of its text.

    returns   what stands in place of "return", with {} for the right result; several lines where ";" parts them
    first     lines before any other
    above     lines before its def
    """

    def written(function: str) -> str:
        text = WHOLE[function]
        for right, wrong in changes:
            assert right in text, f"{function} does not hold {right!r}"
            text = text.replace(right, wrong)
        if returns:
            lines = "\n    ".join(returns.replace("{}", RESULT[function]).split("; "))
            text = text.replace(f"return {RESULT[function]}", lines)
        if first:
            text = text.replace(CHECKS[function], f"    {first}\n{CHECKS[function]}", 1)
        assert text != WHOLE[function] or above
        return f"{above}\n\n{text}"

    return written


OLD, KEPT = "old_log_probs.detach()", "_kept = {}"
SLOPE = "torch.autograd.grad(log_probs.sum(), log_probs)"
FLAT = "np.ndarray(rewards.shape, rewards.dtype, (rewards.base if rewards.base is not None else rewards).data)"
# Laws that it costs, a function, the habit, its text; "…": it shows in calls of other laws as well
CAUGHT: list[tuple[str, str, Habit]] = [
    ("values sizes surrogate", "[1] in place of []", but(returns="return ({}).reshape(1)")),
    ("gradient surrogate", "detached", but(returns="return ({}).detach()")),
    ("gradient surrogate", "detached in place", but(first="log_probs.detach_()")),
    ("gradient surrogate", "no_grad", but(above="@torch.no_grad()")),
    ("gradient surrogate", "ratio frozen", but(("exp(log_probs -", "exp(log_probs.detach() -"))),
    ("gradient surrogate", "graph needed", but(first=f"_ = {SLOPE} if not torch.is_grad_enabled() else 0")),
    ("gradient device surrogate", "item", but(returns="return torch.tensor(({}).item(), dtype=weighted.dtype)")),
    (
        "device surrogate",
        "made on the CPU",
        but(returns="ones = torch.ones(deltas.shape).to(deltas.dtype); return {} + (deltas * ones - deltas).sum()"),
    ),
    ("constants surrogate", "old log-probs", but((OLD, "old_log_probs"))),
    ("constants surrogate", "deltas", but(("deltas.detach()", "deltas"))),
    ("dtype surrogate", "widened", but(returns="return ({}).double()")),
    ("dtype standardized", "narrowed", but(returns="return ({}).astype(np.float32)")),
    ("dtype standardized", "widened", but(returns="return ({}).astype(np.float64)")),
    ("precision surrogate", "float32", but(returns="return ({}).float().to(weighted.dtype)")),
    ("precision standardized", "float32", but(returns="return ({}).astype(np.float32).astype(rewards.dtype)")),
    ("kind dtype standardized", "a list", but(returns="return ({}).tolist()")),
    ("kind selected", "a tuple", but(returns="return tuple({})")),
    ("unmodified surrogate", "in place", but((f"torch.exp(log_probs - {OLD})", f"log_probs.sub_({OLD}).exp_()"))),
    ("unmodified surrogate", "constant", but(returns="result = {}; old_log_probs.data.zero_(); return result")),
    ("unmodified surrogate", "before it raises", but(first="deltas.data.mul_(2 if epsilon < 0 else 1)")),
    ("unmodified surrogate", "requires_grad", but(first="log_probs.requires_grad_()")),
    ("unmodified surrogate", "requires_grad of a constant", but(first="deltas.requires_grad_()")),
    ("unmodified standardized", "in place", but(first="weights *= 2.0; weights = weights / 2")),
    ("unmodified standardized", "emptied", but(returns="result = {}; weights.fill(0); return result")),
    ("unmodified standardized", "before it raises", but(first="rewards -= (scale < 0)")),
    ("unmodified selected", "lists in the list", but(first="[group.sort() for group in groups]")),
    ("unmodified selected", "lists in a copy", but(first="[group.sort() for group in groups[:]]")),
    ("unmodified selected", "emptied", but(returns="result = {}; groups.clear(); return result")),
    ("unmodified selected", "before it raises", but(first="_ = groups.clear() if least < 0 else 0")),
    ("sizes surrogate", "one refused", but(first="assert log_probs.shape[1] > 1")),
    ("sizes standardized", "squeezed", but(returns="return ({}).squeeze()")),
    (
        "sizes standardized",
        "square",
        but(returns="result = {}; return result.T if len(result) == result.shape[1] > 1 else result"),
    ),
    ("layout surrogate", "view", but(("exp(log_probs -", "exp(log_probs.view(-1).view(log_probs.shape) -"))),
    ("layout standardized", "memory", but(first=f"rewards = {FLAT}")),
    (
        "state standardized",
        "result reused",
        but(
            returns="out = _kept.setdefault(str(rewards.shape), np.empty_like(rewards)); out[:] = {}; return out",
            above=KEPT,
        ),
    ),
    ("state standardized", "random numbers", but(first="np.random.rand()")),
    (
        "state surrogate",
        "cached by shape",
        but((OLD, "_kept.setdefault((log_probs.shape, log_probs.dtype), old_log_probs.detach())"), above=KEPT),
    ),
    ("state surrogate", "seeded", but(first="torch.manual_seed(0)")),
    ("state surrogate", "random numbers", but(first="torch.rand(3)")),
    ("state selected", "result reused", but(returns="_kept[:] = {}; return _kept", above="_kept = []")),
    (
        "state selected",
        "default reused",
        but(("groups, least)", "groups, least, found=[])"), returns="found[:] = {}; return found"),
    ),
    (
        "signature surrogate",
        "order",
        but(("log_probs, old_log_probs, deltas, mode", "old_log_probs, log_probs, deltas, mode")),
    ),
    ("signature surrogate", "default", but(("epsilon=0.2", "epsilon=0.3"))),
    ("signature surrogate", "no default", but(("epsilon=0.2", "epsilon"))),
    ("signature standardized", "order", but(("(rewards, weights, scale=2.0)", "(weights, rewards, scale=2.0)"))),
    ("signature standardized", "default", but(("scale=2.0", "scale=1.0"))),
    ("signature standardized", "by name alone", but(("weights, scale=2.0", "weights, *, scale=2.0"))),
    ("signature selected", "order", but(("(groups, least)", "(least, groups)"))),
    ("signature selected", "by place alone", but(("(groups, least)", "(groups, least, /)"))),
    ("signature midpoint", "name", but(("low", "start"))),
    ("falsy surrogate", "or", but(first="epsilon = epsilon or 0.2")),
    ("falsy standardized", "if", but(first="scale = scale if scale else 2.0")),
    ("falsy selected", "or", but(first="least = least or 5")),
    ("errors surrogate", "nothing raised", but(("if epsilon < 0", "if epsilon < -9"))),
    ("errors surrogate", "asserted", but(("raise ValueError(f", "assert False, (f"))),
    (
        "errors surrogate",
        "a beginning will do",
        but(('mode not in ("clipped", "unclipped")', 'not mode.startswith(("clip", "unclip"))')),
    ),
    ("errors standardized", "another kind", but(("raise ValueError", "raise RuntimeError"))),
    ("errors selected", "nothing named", but(("least is below 0", "wrong"))),
    ("errors selected", "printed", but(("raise ValueError", "print"))),
    ("calls midpoint", "called twice", but(returns="return ({} + {}) / 2")),
    ("callables midpoint", "exception swallowed", but(returns="try: return {}; except Exception: return 0.0")),
    (
        "state … surrogate",
        "cached by one argument",
        but((f"log_probs - {OLD}", f"_kept.setdefault(mode, {OLD})"), above=KEPT),
    ),
    ("values … surrogate", "summed", but(returns="return -weighted.sum()")),
    ("values … surrogate", "half precision", but(returns="return ({}).half().to(weighted.dtype)")),
    ("values … standardized", "scale left out", but(("scale * rewards", "rewards"))),
    ("values … standardized", "half precision", but(returns="return ({}).astype(np.float16).astype(rewards.dtype)")),
    ("values … midpoint", "a list of one number", but(returns="return [{}]")),
]
RIGHT: list[tuple[str, str, Habit | str]] = [
    (
        "surrogate",
        "arguments by place",
        "surrogate = (lambda own: lambda *args, **more: own(*args, **more))(surrogate)",
    ),
    ("surrogate", "wrapped", "import functools\nsurrogate = functools.partial(surrogate)"),
    ("surrogate", "annotated and by name", but(("mode, epsilon=0.2", "mode: str, epsilon: float = 2e-1"))),
    (
        "surrogate",
        "detached under no_grad",
        but(("    ratio", "    with torch.no_grad():\n        old = old_log_probs + 0\n    ratio"), (OLD, "old")),
    ),
    ("surrogate", "in place on its own", but((f"torch.exp(log_probs - {OLD})", f"(log_probs - {OLD}).exp_()"))),
    ("surrogate", "loops", but(returns="return sum(-one for row in weighted for one in row) / weighted.numel()")),
    ("surrogate", "helper", but(returns="return _negated(weighted)", above="def _negated(x):\n    return -x.mean()")),
    ("surrogate", "clone", but(first="log_probs = log_probs.clone()")),
    ("surrogate", "generator of its own", but(first="torch.rand(2, generator=torch.Generator().manual_seed(1))")),
    (
        "surrogate",
        "class",
        "class _Loss:\n"
        "    def __call__(self, log_probs, old_log_probs, deltas, mode, epsilon=0.2):\n"
        "        return _own(log_probs, old_log_probs, deltas, mode, epsilon)\n"
        "_own, surrogate = surrogate, _Loss()",
    ),
    ("standardized", "a default of another kind", but(("scale=2.0", "scale=2"))),
    (
        "standardized",
        "loops",
        but(returns="m = rewards.mean(1); return np.stack([(r - scale * x) * weights for r, x in zip(rewards, m)])"),
    ),
    (
        "standardized",
        "einsum",
        but(returns="return np.einsum('bt,t->bt', rewards - scale * rewards.mean(1)[:, None], weights)"),
    ),
    ("standardized", "a copy that is written into", but(first="rewards = rewards.copy(); rewards += 0")),
    ("standardized", "generator of its own", but(first="np.random.default_rng(0).random()")),
    ("standardized", "a constant cached", but(first="_kept[1] = 2", above=KEPT)),
    (
        "selected",
        "filter",
        but(returns="return [sorted(filter(lambda word: len(word) >= least, group)) for group in groups]"),
    ),
    ("selected", "copied and sorted", but(first="groups = [sorted(group) for group in groups]")),
    ("midpoint", "float", but(returns="return float({})")),
    ("midpoint", "math", but(returns="return np.float64({})")),
]
ROWS = [pytest.param(*row, id=f"{row[0]} {row[1]}") for row in CAUGHT]


GUIDE = (KIT / "fixtures/README.md").read_text(encoding="utf-8").partition("\n## A function, declared\n")[2]
DRIFT_ORACLE = """\
import numpy as np


def compute_drift(log_probs, old_log_probs, mode, scale=2.0):
    total = sum((1 + scale * (a - b)) ** 2 for a, b in zip(log_probs.flat, old_log_probs.flat))
    return total / (log_probs.size if mode == "mean" else 1)


def compute_drift_gradient(log_probs, old_log_probs, mode, scale=2.0):
    slopes = [2 * scale * (1 + scale * (a - b)) for a, b in zip(log_probs.flat, old_log_probs.flat)]
    return np.array(slopes).reshape(log_probs.shape) / (log_probs.size if mode == "mean" else 1)
"""
DRIFT = '''\
def compute_drift(log_probs, old_log_probs, mode, scale=2.0):
    """Return the mean or the sum of (1 + scale * difference) ** 2."""
    ### BEGIN SOLUTION
    if mode not in ("mean", "sum"):
        raise ValueError(f"unknown mode {mode!r}")
    if scale < 0:
        raise ValueError("scale is below 0")
    squares = (1 + scale * (log_probs - old_log_probs.detach())) ** 2
    return squares.mean() if mode == "mean" else squares.sum()
    ### END SOLUTION
'''


def test_declaration_in_the_guide_makes_an_exam(tmp_path: Path, sandbox: Sandbox) -> None:
    declaration, items = re.findall(r"```(?:python|toml)\n(.*?)```", GUIDE.partition("\n## ")[0], re.DOTALL)
    assert len(declaration.splitlines()) <= 40
    head = 'assignment = "laws"\ntitle = "Laws"\nmodule = "laws"\n\n'
    own = {"items.toml": head + items, "functions.py": declaration, "oracle.py": DRIFT_ORACLE}
    texts = {f"fixtures/laws/{name}": text for name, text in own.items()} | {"solution/laws/laws.py": DRIFT}
    assignment = load_assignment(_written({**TEXTS, **texts}, tmp_path) / "fixtures/laws")
    grader = Grader.of(assignment, read_fixtures(assignment), counterexamples=False)
    for right, wrong, costs in (
        ("", "", []),
        ("scale=2.0", "scale=1.0", ["drift-form"]),
        (".detach()", "", ["drift-gradient"]),
    ):
        report = grader.grade(Submission("ada", "ada/laws.py", "", DRIFT.replace(right, wrong)), sandbox)
        assert [item.item for item in report.items if item.points != item.max_points] == costs


def test_table_in_the_guide_is_of_the_laws() -> None:
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", GUIDE, re.MULTILINE)) == {
        law.name: law.sentence for law in LAWS.values()
    }
    (types,) = re.findall(r"^An argument is (.*?)\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    assert {*re.findall(r'`"(\w+)', types)} == {*re.findall("[a-z]+", SHAPE.pattern)}


def test_every_law_has_habits() -> None:
    assert {law for key, _, _ in CAUGHT for law in key.split()[:-1]} - {"…"} == LAWS.keys()


@pytest.mark.long
@pytest.mark.parametrize(("where", "name", "habit"), ROWS)
def test_habit_costs_items_of_its_law_alone(
    where: str, name: str, habit: Habit, grader: Grader, sandbox: Sandbox
) -> None:
    *laws, function = where.split()
    docked = lost(grader, sandbox, function, habit(function))
    assert docked == {*laws} or (laws[-1] == "…" and laws[0] in docked)


@pytest.mark.parametrize("function", JUDGED)
def test_right_answers_in_odd_styles_earn_all(function: str, grader: Grader, sandbox: Sandbox) -> None:
    texts = {name: one if isinstance(one, str) else one(function) for of, name, one in RIGHT if of == function}
    docked = {name: lost(grader, sandbox, function, text) for name, text in {"": "", **texts}.items()}
    assert not any(docked.values()), docked
