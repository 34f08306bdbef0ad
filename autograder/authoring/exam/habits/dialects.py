"""How the habits of students are written of tensors, of NumPy arrays, and of Python's own numbers and lists."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.authoring.exam.graded_text import GradedText


@dataclass(frozen=True)
class Dialect:
    """Templates of Python, in which `{0}`, `{1}` are expressions: as they stand, or `{atom}` in brackets if need be.

    within      kept between two bounds: {low}, {high}
    above       kept above a bound: {low}
    no_nan      not-a-number and infinity replaced; "" where there is no such function
    close       whether two are nearly equal
    truncated   whole numbers; "" where there are none of that kind
    casts       of another precision
    """

    within: str
    above: str
    no_nan: str
    close: str
    truncated: str
    casts: tuple[str, ...]


TENSORS = Dialect(
    within="{atom}.clamp({low}, {high})",
    above="{atom}.clamp(min={low})",
    no_nan="torch.nan_to_num({0})",
    close="torch.isclose(torch.as_tensor({0}), torch.as_tensor({1}))",
    truncated="{atom}.trunc()",
    casts=("{atom}.float()", "{atom}.double()", "{atom}.half()"),
)
ARRAYS = Dialect(
    within="np.clip({0}, {low}, {high})",
    above="np.maximum({0}, {low})",
    no_nan="np.nan_to_num({0})",
    close="np.isclose({0}, {1})",
    truncated="np.trunc({0})",
    casts=("np.asarray({0}, dtype=np.float32)",),
)
NUMBERS = Dialect(
    within="max({low}, min({high}, {0}))",
    above="max({0}, {low})",
    no_nan="",
    close="(abs({0} - {atom1}) < 1e-8)",
    truncated="",
    casts=(),
)


def dialect_of(graded: GradedText) -> Dialect:
    """That of the module that a function stands in."""
    return {"torch": TENSORS, "numpy": ARRAYS, "python": NUMBERS}[graded.values]
