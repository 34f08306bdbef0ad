"""Whose fault it is that an oracle raised: its own, or that of what one case gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.authoring.declarations import Draft, OracleFault
from autograder.authoring.proofreading.fault import Fault, fault_of, places_in
from autograder.vocabulary.errors import FixtureError, KitError

ORACLES = "an oracle that answers"
Ask = Callable[..., Any]  # the solution, with a function's name, inputs and parameters


class UndrawnError(BaseException):
    """Raised where a sandbox would be asked and there is none; no `Exception`, which an author's code might catch."""


def fault_of_answer(
    error: Exception, draft: Draft, place: tuple[Path, int], folder: Path, others: Iterable[Draft], ask: Ask
) -> Fault:
    """The fault that an exception of a draft's oracle is: at the line of the case where that is what is wrong.

    It is where the oracle answers another case of the same function, or the solution refuses the same arguments.
    """
    lines = list(places_in(error, folder))
    function = draft.params.get("function")
    if isinstance(error, OracleFault) and isinstance(function, str) and any(map(_is_answered, _alike(draft, others))):
        return Fault(*place, f"{draft.case}: {error.what}", f"{error.right}; in other cases it answers")
    if isinstance(error, KitError) or _is_its_own(error) or not lines or not isinstance(function, str):
        return fault_of(error, folder, place, ORACLES)
    refused = _refused_by_solution(draft, function, ask)
    if not refused and not any(map(_is_answered, _alike(draft, others))):
        return fault_of(error, folder, place, ORACLES)
    path, line = lines[-1]
    said = (str(error)[:300] or "without a message").rstrip(".")
    told = f"{draft.case}: the oracle {function} raises {type(error).__name__}: {said} ({path.name}:{line})"
    right = f"arguments that {function} takes" if refused else "arguments as in the cases that it answers"
    return Fault(*place, told, f"{right}; or an oracle that answers these{refused}")


def _alike(draft: Draft, others: Iterable[Draft]) -> list[Draft]:
    """The other drafts for which the oracle is asked the same function."""
    function = draft.params.get("function")
    return [
        one
        for one in others
        if one is not draft and one.params.get("function") == function and not one.params.get("raises")
    ]


def _is_its_own(error: Exception) -> bool:
    """Whether no arguments can be at fault: a name that there is not."""
    is_of_module = isinstance(error, AttributeError) and isinstance(error.obj, ModuleType)
    return is_of_module or isinstance(error, NameError | ImportError)


def _is_answered(draft: Draft) -> bool:
    try:
        draft.answer(draft.inputs, draft.params)
    except (Exception, UndrawnError):
        return False
    return True


def _refused_by_solution(draft: Draft, function: str, ask: Ask) -> str:
    """What the solution does with the same arguments, as the end of a sentence, where it answers nothing."""
    if draft.probe != "call":
        return ""
    try:
        ask(function, draft.inputs, draft.params)
    except (FixtureError, UndrawnError) as error:
        ended = str(error).partition(", ends so: ")[2].rstrip(".")
        return f". The solution does not either: {ended}" if ended else ""
    except Exception:  # what cannot be sent to a sandbox is told elsewhere
        return ""
    return ""
