"""What a course decided on points: its policy, overrides, when what was handed in, slip days.

    policy.toml      as gradebook/policy.py says
    overrides.csv    student,item,points,comment
    timestamps.csv   student,submitted
    ../slip-days.toml, beside the folders of grades:  days = 5, and [students] with another number for some

Every file is optional. What cannot be read is refused with its line, and nothing is written: a grade by half a policy
would be worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.gradebook.hand_in_times import GIVEN, Times, times_of, to_csv
from autograder.gradebook.overrides import Override, counting, read_overrides
from autograder.gradebook.policy import Late, Policy, SlipDays, read_policy, read_toml
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.text import visible

POLICY, OVERRIDES, SLIP_DAYS = "policy.toml", "overrides.csv", "slip-days.toml"


@dataclass(frozen=True)
class Rules:
    """What a course decided.

    given   the files that are to be kept beside the grades. What is kept there already is not among them: somebody may
            add to it while this is in use
    slip    student → slip days left for this deadline, and all of the term
    """

    policy: Policy = field(default_factory=Policy)
    overrides: Sequence[Override] = ()
    times: Times | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)
    slip: Callable[[str], tuple[int, int]] | None = None

    @property
    def questions(self) -> dict[str, float]:
        """The questions in words that count, with what they are worth."""
        return counting(self.overrides)

    def check_students(self, known: Iterable[str], out: Path) -> list[str]:
        """Raise UsageError for an override of nobody; those of the policy who handed in nothing.

        Somebody is who is `known`, or has a report in `out`.
        """
        named = {*self.policy.students, *(override.student for override in self.overrides)}
        everybody = {*known, *(name for name in named if (out / "reports" / f"{file_stem(name)}.json").is_file())}
        for override in self.overrides:
            if override.student not in everybody:
                raise UsageError(f"{override.place}: nobody called {visible(override.student, 80)} handed in.")
        return sorted(self.policy.students - everybody)


def read_rules(
    out: Path,
    assignment: Assignment,
    policy: Path | None,
    overrides: Path | None,
    times: Times | None,
    seen: Times | None = None,
) -> Rules | None:
    """The rules in these files, else in those of an earlier run that `out` keeps; None where there are none.

    times   when students handed in, as staff say
    seen    the same as the download says that is being graded
    """
    given = {name: path.read_bytes() for name, path in ((POLICY, policy), (OVERRIDES, overrides)) if path}
    given |= {} if times is None else {GIVEN: to_csv(times)}
    if not given and not any((out / name).is_file() for name in (POLICY, OVERRIDES, GIVEN)):
        return None
    policy, overrides = policy or out / POLICY, overrides or out / OVERRIDES
    rules = read_policy(policy, assignment) if POLICY in given or policy.is_file() else Policy()
    changed = rules.changed(assignment)
    rows = read_overrides(overrides, changed) if OVERRIDES in given or overrides.is_file() else []
    when = times_of(out, rules.timezone, times, seen) if rules.late else None
    if rules.late and not when:
        raise UsageError(
            f"{policy} has late rules, but nothing says when students handed in: give --timestamps the file of your "
            "platform (which one: autograder/README.md, When students handed in; for Canvas the list of submissions "
            "that its API gives). No date of a file is taken: anyone can set it."
        )
    return Rules(rules, rows, when, given, _slip_days(out, rules.late))


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
