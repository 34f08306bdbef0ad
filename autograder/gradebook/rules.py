"""What a course decided on points: its policy, overrides, when what was handed in, slip days.

    policy.toml      as gradebook/policy.py says
    decisions.csv    what staff decided on single grades: `overrides`
    timestamps.csv   student,submitted
    ../slip-days.toml, beside the folders of grades:  days = 5, and [students] with another number for some

Every file is optional. What cannot be read is refused with its line, and nothing is written: a grade by half a policy
would be worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from autograder.gradebook.hand_in_times import GIVEN, Times, times_of, to_csv
from autograder.gradebook.overrides import JOURNAL, Decisions, Override, decisions_of
from autograder.gradebook.policy import Late, Policy, SlipDays, read_policy, read_toml
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.text import visible

POLICY, SLIP_DAYS = "policy.toml", "slip-days.toml"


@dataclass(frozen=True)
class Rules:
    """What a course decided.

    given       the files that are to be kept beside the grades. What is kept there already is not among them: somebody
                may add to it while this is in use
    slip        student → slip days left for this deadline, and all of the term
    decisions   the journal that `overrides` follow from
    """

    policy: Policy = field(default_factory=Policy)
    overrides: Sequence[Override] = ()
    times: Times | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)
    slip: Callable[[str], tuple[int, int]] | None = None
    decisions: Decisions | None = None

    @property
    def questions(self) -> dict[str, float]:
        """The questions in words that count, with what they are worth: those for which somebody has points."""
        given = [row for row in self.overrides if row.points is not None]
        return {row.item: row.on_top for row in given if row.on_top is not None}

    def check_students(self, known: Iterable[str], out: Path) -> list[str]:
        """Raise UsageError for an override of nobody; those of the policy who handed in nothing.

        Somebody is who is `known`, or has a report in `out`.
        """
        everybody = {*map(file_stem, known), *(path.stem for path in (out / "reports").glob("*.json"))}
        for override in self.overrides:
            if override.student not in everybody:
                name = visible(override.student, 80)
                raise UsageError(f"{override.place}: nobody handed in whose report is called {name}.")
        return sorted(name for name in self.policy.students if file_stem(name) not in everybody)

    def kept(self) -> Self:
        """The same once the journal holds the new decisions, and with what others have decided meanwhile."""
        return replace(self, overrides=self.decisions.keep()) if self.decisions else self


def read_rules(
    out: Path,
    assignment: Assignment,
    policy: Path | None,
    overrides: Sequence[Path],
    times: Times | None,
    seen: Times | None = None,
    *,
    replace_decisions: bool = False,
) -> Rules | None:
    """The rules in these files, else in those of an earlier run that `out` keeps; None where there are none.

    Those of `overrides` are added to the decisions that it keeps, and may replace some where that is meant.

    times   when students handed in, as staff say
    seen    the same as the download says that is being graded
    """
    given = {POLICY: policy.read_bytes()} if policy else {}
    given |= {} if times is None else {GIVEN: to_csv(times)}
    policy = policy or out / POLICY
    rules = read_policy(policy, assignment) if POLICY in given or policy.is_file() else Policy()
    decisions = decisions_of(out, rules.changed(assignment), overrides, replace=replace_decisions)
    if not given and not decisions.new and not any((out / name).is_file() for name in (POLICY, JOURNAL, GIVEN)):
        return None
    when = times_of(out, rules.timezone, times, seen) if rules.late else None
    if rules.late and not when:
        raise UsageError(
            f"{policy} has late rules, but nothing says when students handed in: give --timestamps the file of your "
            "platform (which one: autograder/README.md, When students handed in; for Canvas the list of submissions "
            "that its API gives). No date of a file is taken: anyone can set it."
        )
    return Rules(rules, decisions.merged()[1], when, given, _slip_days(out, rules.late), decisions)


def _slip_days(out: Path, late: Late | None) -> Callable[[str], tuple[int, int]] | None:
    """The slip days of the term that `out` is part of, used in the order of deadlines, of equal ones of names."""
    folder = out.resolve()
    if late is None or not (path := folder.parent / SLIP_DAYS).is_file():
        return None
    budget, used = read_toml(path, SlipDays), dict[str, int]()

    def left(student: str) -> tuple[int, int]:
        term = budget.students.get(student, budget.days)
        return max(0, term - used.get(student, 0)), term

    policies = [(kept.parent, read_policy(kept, None)) for kept in sorted(folder.parent.glob(f"*/{POLICY}"))]
    dated = [(policy.late.deadline, other.name, other, policy) for other, policy in policies if policy.late]
    for due, name, other, policy in sorted(dated, key=lambda one: one[:2]):
        if (due, name) < (late.deadline, folder.name):
            for student, when in times_of(other, policy.timezone).items():
                if policy.late and student not in policy.excused.students:
                    days_used = policy.late.slip_days(student, when, left(student)[0])
                    used[student] = used.get(student, 0) + days_used
    return left
