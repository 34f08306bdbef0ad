"""The graded items as a course would test them in process: call, then compare with NumPy.

No sandbox, no names for mistakes. A copy of this file lies in the workspace of each contender, beside copies of the
probes, the given modules, items.toml and the stored tensors. It imports nothing of the kit; pytest and nbgrader
both call `check(item, module)`.
"""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import probes
import torch
from safetensors import safe_open

FOLDER = Path(__file__).resolve().parent
torch.set_num_threads(1)  # as fast as these small tensors allow: a second thread slows them down


def items() -> dict[str, float]:
    """Every item's id with its points."""
    listed = tomllib.loads((FOLDER / "items.toml").read_text(encoding="utf-8"))["item"]
    return {item["id"]: item["points"] for item in listed}


def check(item: str, student: Any) -> None:
    """Raise AssertionError unless every case of the item holds; what student code raises comes through."""
    for stored, case in cases(item):
        wrong = run(stored, case, student)
        assert not wrong, f"{case['case']}: {wrong}"


def cases(item: str) -> list[tuple[Any, dict[str, Any]]]:
    """The cases of an item: the open file that holds their tensors, and what is said of each."""
    found = []
    for visibility in ("public", "hidden"):
        path = FOLDER / visibility / f"{item}.safetensors"
        if path.exists():
            stored = safe_open(path, framework="pt")
            found += [(stored, case) for case in json.loads(stored.metadata()["cases"])]
    return found


def run(stored: Any, case: dict[str, Any], student: Any) -> str:
    """Call the probe of one case; "" where all that is expected holds, else the first thing that does not."""
    inputs = {name: stored.get_tensor(f"{case['case']}/input/{name}") for name in case["inputs"]}
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    returned, facts = getattr(probes, case["probe"])(student, inputs, case["params"])
    for expected in case["expected"]:
        if not expected.get("diagnosis") and not _holds(expected, stored, case["case"], returned, facts):
            return str(expected.get("what") or expected["name"])
    return ""


def _holds(expected: dict[str, Any], stored: Any, case: str, returned: dict[str, Any], facts: dict[str, Any]) -> bool:
    kind, name = expected["kind"], expected["name"]
    if kind == "fact":
        return bool(facts.get(name) == expected.get("value"))
    if kind == "error":
        return _error_holds(expected["value"], facts.get(name))
    wanted, got = stored.get_tensor(f"{case}/expected/{name}"), returned.get(name)
    forgiven = expected.get("forgiven", ())
    if not isinstance(got, torch.Tensor) or got.shape != wanted.shape:
        return False
    if "dtype" not in forgiven and str(got.dtype) != f"torch.{expected['dtype']}":
        return False
    numbers, right = got.detach().numpy(), wanted.numpy()
    if kind == "unchanged":
        return np.array_equal(numbers, right)
    if expected.get("attached") not in (None, got.requires_grad):
        return False
    rough = "dtype" in forgiven and got.dtype == torch.float32  # judged to its own precision
    rtol, atol = (1e-4, 1e-6 * float(np.abs(right).max(initial=1.0))) if rough else (0.0, 0.0)
    rtol, atol = max(rtol, expected.get("rtol", 0.0)), max(atol, expected.get("atol", 0.0))
    close = "values" in forgiven or np.allclose(numbers, right, rtol=rtol, atol=atol)
    return bool(close and np.isfinite(numbers).all())


def _error_holds(expected: dict[str, Any], error: Any) -> bool:
    if not error or expected["type"] not in error["types"]:
        return False
    return all(text in error["message"] for text in expected.get("mentions", ()))
