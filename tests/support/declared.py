"""Cases of one call, for tests: a function is declared from the arguments that it is called with."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.calls import Formula
from autograder.authoring.declarations import Draft
from autograder.authoring.laws.cases import Planned, draft_of
from autograder.authoring.laws.declaration import Error, Function
from autograder.authoring.laws.laws import LAWS, Call

EVERYTHING = frozenset().union(*(law.aspects for law in LAWS.values())) | {"errors", "calls"}
OF_FUNCTION = ("kind", "leaves", "constants", "by_name", "defaults", "options")


@dataclass(frozen=True)
class Declared:
    """Make cases of the functions of an oracle's text, of which everything is looked at."""

    oracle: str
    values: str = "torch"

    def case(self, function: str, arguments: dict[str, Any], returns: Any = "", **more: Any) -> Draft:
        """Declare one call; `returns` names axes, and `more` is as a Function or the options of a Call say."""
        module = ModuleType("made")
        exec(f"import math, numpy as np\n{self.oracle}", module.__dict__)
        shapes = {name: _shape(value) for name, value in arguments.items()}
        known = {name: more.pop(name) for name in OF_FUNCTION if name in more}
        sizes = {"row": (1, 4, 7), "column": (1, 5, 9)}
        axes = returns if isinstance(returns, dict) or returns is None else {"": returns}
        named = None if axes is None else {name: f"float[{listed}]" for name, listed in axes.items()}
        result = named[""] if named is not None and "" in named else named
        declared = Function(function, shapes, result, sizes, {}, values=self.values, **known)
        if "raises" in more:
            more["raises"] = {name: Error(*raised) for name, raised in more["raises"].items()}
        call = Call("", "…", "", options=more)
        return draft_of(Planned(function, "public", declared, LAWS["values"], call, EVERYTHING), arguments, module)


def _shape(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"float[{' '.join(('row', 'column')[: value.ndim])}]"
    return "function" if isinstance(value, Formula) else "other"
