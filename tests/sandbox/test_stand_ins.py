"""What student code calls in place of its own functions, by whatever name it has bound them."""

from __future__ import annotations

import inspect
import sys
import threading
from types import ModuleType

import pytest

from autograder.sandbox.worker.calling import answering, standing_in

GIVEN = "def sample():\n    return 'given'\n"
KINDS = {
    "a function": GIVEN,
    "a class": "class sample(str):\n    def __new__(cls):\n        return 'given'\n",
    "a class with a metaclass": (
        "import abc\nclass sample(str, metaclass=abc.ABCMeta):\n    def __new__(cls):\n        return 'given'\n"
    ),
    "an object": "class Sample:\n    def __call__(self):\n        return 'given'\nsample = Sample()\n",
    "a cached function": f"import functools\n{GIVEN}sample = functools.cache(sample)\n",
    "a partial": f"import functools\n{GIVEN}sample = functools.partial(sample)\nsample.kept = 'kept'\n",  # not unpacked
    "an object with slots": (
        "class Call:\n    __slots__ = ('f',)\n    def __call__(self):\n        return self.f()\n"
        f"class Sample(Call):\n    __slots__ = ()\n{GIVEN}made = Sample()\nmade.f, sample = sample, made\n"
    ),
}
BOUND = {
    "by its name": "def loop():\n    return sample()",
    "under another name": "draw = sample\ndef loop():\n    return draw()",
    "as a default": "def loop(draw=sample):\n    return draw()",
    "in a closure": "def outer(draw):\n    def loop():\n        return draw()\n    return loop\nloop = outer(sample)",
    "in a partial": "import functools\ndraw = functools.partial(sample)\ndef loop():\n    return draw()",
    "in a table within a table": "ALL = [({'usual': [sample]}, 1)]\ndef loop():\n    return ALL[0][0]['usual'][0]()",
    "in an object": (
        "class Draws:\n    def __init__(self, draw):\n        self.draw = draw\n    def run(self):\n"
        "        return self.draw()\nloop = Draws(sample).run"
    ),
    "in a class as a plain attribute": "class Draws:\n    usual = sample\ndef loop():\n    return Draws.usual()",
    "behind a decorator": (
        "import functools\ndef told(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n"
        "    return inner\n"
        "@told\ndef loop(draw=sample):\n    return draw()"
    ),
}


def module(name: str, source: str, **given: object) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)  # where a dataclass looks for it
    vars(made).update(given)
    try:
        exec(source, vars(made))
    finally:
        del sys.modules[name]
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", BOUND)
def test_stand_in_is_called_however_it_is_bound(kind: str, how: str) -> None:
    given = module("given", KINDS[kind])
    student = module("student", BOUND[how], sample=given.sample)
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert student.loop() == "stand-in"
    assert student.loop() == "given"
    assert given.sample() == "given"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "class" not in kind])
def test_stand_in_calls_the_real_one(kind: str) -> None:
    given = module("given", KINDS[kind])
    student = module("student", BOUND["as a default"], sample=given.sample)
    real = given.sample
    with standing_in([student, given], {"sample": lambda: f"not {real()}"}):
        assert student.loop() == "not given"
    assert student.loop() == "given"


def test_other_objects_of_the_class_stay() -> None:
    source = "class Say:\n    def __init__(self, text):\n        self.text = text\n    def __call__(self):\n"
    source += "        return self.text\nfirst, second, third = map(Say, 'abc')\nALL = [first, second, third]\n"
    student = module("student", f"{source}def loop():\n    return [say() for say in ALL]")
    with standing_in([student], {"first": lambda: "A", "second": lambda: "B"}):
        assert student.loop() == ["A", "B", "c"]
    assert student.loop() == ["a", "b", "c"]


def test_class_is_made_as_before_afterwards() -> None:
    given = module("given", "class Pair:\n    def __init__(self, left, right=0):\n        self.both = left, right\n")
    student = module("student", "def make(kind=Pair):\n    return kind(1, right=2).both", Pair=given.Pair)
    made = []

    class Other(given.Pair):  # type: ignore[name-defined, misc]
        def __init__(self, *arguments: int, **named: int) -> None:
            made.append((arguments, named))
            super().__init__(5)

    for _ in range(2):
        with standing_in([student, given], {"Pair": Other}):
            assert student.make() == (5, 0)
            assert Other().both == (5, 0)
        assert student.make() == (1, 2)
        assert str(inspect.signature(given.Pair)) == "(left, right=0)"
    assert made == [((1,), {"right": 2}), ((), {})] * 2


def test_signature_of_a_stand_in_is_the_functions_own() -> None:
    given = module("given", "def sample(count, *, seed=0):\n    return 'given'\n")
    student = module("student", "def loop():\n    return sample()", sample=given.sample)
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert str(inspect.signature(student.sample)) == "(count, *, seed=0)"
        assert student.loop() == "stand-in"
    assert not vars(given.sample)


def test_function_imported_under_another_name_is_replaced() -> None:
    given = module("given", GIVEN)
    student = module("student", "def loop():\n    return draw()", draw=given.sample)
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert student.loop() == "stand-in"
    assert student.loop() == "given"
    assert not hasattr(student, "sample")


def test_library_function_is_replaced_in_the_submission_alone() -> None:
    source = (
        "import textwrap\nsample = draw = textwrap.dedent\ndef loop():\n    return draw(' a'), textwrap.dedent(' b')"
    )
    student = module("student", source)
    with standing_in([student], {"sample": lambda text: "stand-in"}):
        assert student.loop() == ("stand-in", "b")
    assert student.loop() == ("a", "b")


def test_another_function_of_the_same_text_is_left_alone() -> None:
    given = module("given", GIVEN)
    student = module(
        "student", f"{GIVEN.replace('sample', 'draw')}def loop(f=draw):\n    return f()", sample=given.sample
    )
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert student.loop() == "given"


def test_everything_is_as_it_was_after_an_exception() -> None:
    given = module("given", GIVEN)
    student = module("student", BOUND["as a default"], sample=given.sample)
    with pytest.raises(RuntimeError), standing_in([student, given], {"sample": lambda: "stand-in"}):
        raise RuntimeError
    assert student.loop() == "given"


def test_stand_ins_in_two_threads_at_once_are_both_called() -> None:
    source = "import concurrent.futures as cf\ndef loop():\n    with cf.ThreadPoolExecutor(2) as pool:\n"
    source += "        return list(pool.map(lambda _: sample(), range(2)))"
    student = module("student", f"{GIVEN}{source}")
    both_inside = threading.Barrier(2)

    def stand_in() -> str:
        both_inside.wait(10)
        return "stand-in"

    with standing_in([student], {"sample": stand_in}):
        assert student.loop() == ["stand-in", "stand-in"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("f(x, 2)", "right"),
        ("f(n=2, xs=x)", "right"),
        ("f(x.float() + 1e-7, 2)", "right"),
        ("f(x, 1).all()", "truth"),
        ("f(x, 3)", "own"),
        ("f(x + 0.1, 2)", "own"),
        ("f(x[None], 2)", "own"),
        ("f(x.numpy(), 2)", "own"),
        ("f(x.tolist(), n=2)", "own"),
        ("f(x.requires_grad_(), 2)", "own"),
        ("f(x)", "missing 1 required"),
        ("f(x, 2, more=1)", "unexpected keyword"),
    ],
)
def test_another_function_answers_what_is_known_and_its_own_otherwise(call: str, expected: str) -> None:
    torch = pytest.importorskip("torch")
    student = module("student", f"def f(xs, n):\n    return 'own'\ndef g(x):\n    return {call}")
    x = torch.tensor([0.5, 2.0], dtype=torch.float64)
    answered = [
        ["f", [[3.0], 2], [4.0]],
        ["f", [[0.5, 2.0], 2], [1.0, 4.0]],
        ["f", [[0.5, 2.0], 1], [True]],
        ["lacking", [[1.0]], [1.0]],
    ]
    with answering(student, {"answered": answered}):
        try:
            found = student.g(x)
        except TypeError as error:
            found = str(error)
    if expected == "right":
        assert (found.tolist(), found.dtype) == ([1.0, 4.0], torch.float32 if "float()" in call else torch.float64)
    elif expected == "truth":
        assert found.dtype == torch.bool
    else:
        assert expected in found
    assert student.f(x, 2) == "own"
