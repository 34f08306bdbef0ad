"""The catalogue of policy_gradient as a text: it compiles, keeps signatures, and hints give nothing away."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from all_assignments import generator_of
from places import KIT

SOLUTION = (KIT / "solution" / "policy_gradient" / "policy_gradient.py").read_text()
WRONG = generator_of("policy_gradient")["mistakes"]
CORRECT, MISTAKES, Correct, Mistake = WRONG.CORRECT, WRONG.MISTAKES, WRONG.Correct, WRONG.Mistake
BY_FUNCTION = {correct.function: correct for correct in CORRECT}


def each(mistakes: Sequence[Mistake]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mistake", mistakes, ids=[m.slug for m in mistakes])


# The catalogue as a text


def test_the_catalogue_compiles_and_keeps_every_signature() -> None:
    WRONG.check_catalogue()


def test_the_catalogue_can_be_read_without_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from all_assignments import generator_of;"
        "generator_of('policy_gradient')['mistakes'].check_catalogue()"
    )
    subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[1] / "support", check=True)


def test_an_edit_that_fits_nowhere_or_twice_is_refused() -> None:
    correct = Correct("double", "def double(x):\n    return x + x\n")
    for right in ("y", "x + x + x", "x"):
        with pytest.raises(ValueError, match=r"slug: .* should occur once"):
            correct.but("slug", "Is it twice?", (right, "2"))


# Hints


@each(MISTAKES)
def test_a_hint_names_no_call_or_keyword_that_its_correction_would_add(mistake: Mistake) -> None:
    used = set(re.findall(r"\w+", mistake.source))
    added = set(re.findall(r"(\w+)(?:\(|=(?!=))", BY_FUNCTION[mistake.function].source)) - used
    assert added.isdisjoint(re.findall(r"\w+", mistake.hint))
