"""A slice of the fuzzing, always the same: `python tests/fuzz --minutes N` goes on from where it ends.

`test_ten_minutes.py` does so in the long stage, from another place each day.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile import MODULE, TARGETS, assignment, attempt, zipped
from lengths import in_short

from autograder.gradebook.rules import read_policy
from autograder.platforms.layouts import gathered
from autograder.vocabulary.errors import UsageError

EXPECTED = {"read", "refused"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first", in_short(range(0, 400, 20)))
def test_what_is_spoilt_is_read_or_refused_with_a_reason(target: str, first: int) -> None:
    became = {number: attempt(target, number) for number in range(first, first + 20)}
    assert {number: what for number, what in became.items() if what not in EXPECTED} == {}


def test_each_target_meets_both_what_is_read_and_what_is_refused() -> None:
    """Or it would spoil too little to matter, or so much that the first check stops it."""
    for target in {*TARGETS} - {"frames", "handed-in", "words"}:  # of these nothing is refused: it is a verdict
        assert {attempt(target, number) for number in range(40)} >= ({"read"} if target == "downloads" else EXPECTED)


def test_a_finding_is_told_with_its_place_and_is_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "frames", lambda source, folder: 1 // source.randrange(1))
    assert attempt("frames", 3) == attempt("frames", 3) == "ZeroDivisionError: integer division or modulo by zero "


# What was found


def test_a_damaged_entry_of_a_class_zip_is_refused(tmp_path: Path) -> None:
    whole = zipped({f"ada_17_23_{MODULE}.py": b"x = 1\n" * 50})
    start = whole.index(b".py") + 3
    (tmp_path / "class.zip").write_bytes(whole[:start] + b"\xff" * 8 + whole[start + 8 :])
    with pytest.raises(UsageError, match="is damaged at"), gathered([tmp_path / "class.zip"], MODULE, class_zip=True):
        pass


def test_a_number_of_five_thousand_digits_in_a_policy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(f"[late]\nper_day = {'9' * 5000}\n")
    with pytest.raises(UsageError, match="this is not TOML: Exceeds the limit"):
        read_policy(path, assignment())
