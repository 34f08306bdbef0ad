"""What student code calls in place of its own functions, by whatever name it has bound them."""

from __future__ import annotations

from types import ModuleType

import pytest

from autograder.sandbox.inside.calling import standing_in

GIVEN = "def sample():\n    return 'given'\n"
BOUND = {
    "by its name": "def loop():\n    return sample()",
    "under another name": "draw = sample\ndef loop():\n    return draw()",
    "as a default": "def loop(draw=sample):\n    return draw()",
    "as a default that is passed by name": "def loop(*, draw=sample):\n    return draw()",
    "in a closure": "def outer(draw):\n    def loop():\n        return draw()\n    return loop\nloop = outer(sample)",
    "in a partial": "import functools\ndraw = functools.partial(sample)\ndef loop():\n    return draw()",
    "in a partial that is a default": "import functools\ndef loop(draw=functools.partial(sample)):\n    return draw()",
    "in a table": "DRAWS = {'usual': sample}\ndef loop():\n    return DRAWS['usual']()",
    "in a pair": "DRAWS = (sample, None)\ndef loop():\n    return DRAWS[0]()",
    "behind a decorator": (
        "import functools\ndef told(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n"
        "    return inner\n"
        "@told\ndef loop(draw=sample):\n    return draw()"
    ),
    "in a method": (
        "class Loop:\n    def run(self, draw=sample):\n        return draw()\ndef loop():\n    return Loop().run()"
    ),
    "in a static method": (
        "class Loop:\n    @staticmethod\n    def run(draw=sample):\n        return draw()\nloop = Loop.run"
    ),
}


def module(name: str, source: str, **given: object) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(given)
    exec(source, vars(made))
    return made


@pytest.mark.parametrize("how", BOUND)
def test_a_stand_in_is_called_however_a_submission_has_bound_what_it_replaces(how: str) -> None:
    given = module("given", GIVEN)
    student = module("student", BOUND[how], sample=given.sample)
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert student.loop() == "stand-in"
    assert student.loop() == "given"
    assert given.sample() == "given"


def test_a_function_that_is_imported_under_another_name_alone_is_replaced_too() -> None:
    given = module("given", GIVEN)
    student = module("student", "def loop():\n    return draw()", draw=given.sample)
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert student.loop() == "stand-in"
    assert student.loop() == "given"
    assert not hasattr(student, "sample")


def test_another_function_of_the_same_text_is_left_alone() -> None:
    given = module("given", GIVEN)
    student = module(
        "student", f"{GIVEN.replace('sample', 'draw')}def loop(f=draw):\n    return f()", sample=given.sample
    )
    with standing_in([student, given], {"sample": lambda: "stand-in"}):
        assert student.loop() == "given"


def test_a_value_that_is_no_function_is_replaced_by_its_name_alone() -> None:
    student = module("student", "SIZE = 3\nother = 3\ndef loop(size=3):\n    return SIZE, other, size")
    with standing_in([student], {"SIZE": 4}):
        assert student.loop() == (4, 3, 3)
    assert student.loop() == (3, 3, 3)


def test_everything_is_as_it_was_after_an_exception() -> None:
    given = module("given", GIVEN)
    student = module("student", BOUND["as a default"], sample=given.sample)
    with pytest.raises(RuntimeError), standing_in([student, given], {"sample": lambda: "stand-in"}):
        raise RuntimeError
    assert student.loop() == "given"
