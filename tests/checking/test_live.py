"""What a test cell does in a kernel: the same verdicts and words as `check`, points as nbgrader reads them."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from all_assignments import handout_of
from places import KIT

from autograder.checking import live
from autograder.grading.assignment import find_assignment
from autograder.vocabulary.errors import GraderFault

NAME = "policy_gradient"
Edit = Callable[[str], str]


@pytest.fixture(scope="module")
def solution() -> str:
    return (find_assignment(KIT, NAME).solution / f"{NAME}.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handout as students have it: a clone's own lacks the public cases."""
    return handout_of(NAME, tmp_path_factory.mktemp("released") / NAME)


@pytest.fixture
def kernel(solution: str, handout: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run an edited solution as a notebook would: its names are those of `__main__`."""
    monkeypatch.chdir(handout)

    def define(edit: Edit = lambda text: text) -> None:
        main = types.ModuleType("__main__")
        source = edit(solution)
        exec(compile(source, "<cell>", "exec"), main.__dict__)
        monkeypatch.setitem(linecache.cache, "<cell>", (len(source), None, source.splitlines(keepends=True), "<cell>"))
        monkeypatch.setitem(sys.modules, "__main__", main)

    define()
    return define


def test_solution_earns_an_item_of_each_function(
    kernel: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    items = {item.function: item for item in find_assignment(KIT, NAME).items}.values()
    assert [live.score(NAME, item.id) for item in items] == [item.points for item in items]
    seen = capsys.readouterr()
    assert seen.err == ""
    assert seen.out.count("PASS") == len(items)


def test_wrong_answer_shows_points_first_then_the_reason(
    kernel: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = "rewards.std(dim=-1, keepdim=True)"
    kernel(lambda text: text.replace(right, "rewards.std(dim=-1, keepdim=True, correction=0)"))
    shown: list[tuple[object, str]] = []
    monkeypatch.setattr(sys, "displayhook", lambda value: shown.append((value, capsys.readouterr().err)))
    assert live.score(NAME, "deltas-normalized") is None
    assert shown == [(0.0, "")]
    text = capsys.readouterr().err
    assert " values differ" in text
    assert "A standard deviation can divide by G or by G - 1." in text
    assert max(map(len, text.splitlines())) <= 82


def test_hidden_cases_run_beside_the_staffs_fixtures_alone(
    kernel: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {case.visibility for case in live.result_of(NAME, "kl-values").cases} == {"public"}
    monkeypatch.chdir(KIT / "solution" / NAME)
    assert {case.visibility for case in live.result_of(NAME, "kl-values").cases} == {"public", "hidden"}


def test_exception_names_the_line_of_its_cell(kernel: Callable[..., None]) -> None:
    kernel(lambda text: text.replace("    log_ratio = ref", "    log_ratio = 1 / 0\n    log_ratio = ref"))
    found = live.result_of(NAME, "kl-values")
    assert found.verdict == "raised"
    assert found.message.startswith("compute_kl_penalty raised ZeroDivisionError: division by zero.\nLine ")
    assert found.message.endswith("of its cell:\n  log_ratio = 1 / 0")


def test_hang_is_stopped_though_it_catches_exceptions(
    kernel: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = "    while True:\n        try:\n            while True: pass\n        except Exception: pass\n    log_ratio"
    kernel(lambda text: text.replace("    log_ratio", hang, 1))
    original = live.time_limit
    monkeypatch.setattr(live, "time_limit", lambda seconds: original(0.2))
    found = live.result_of(NAME, "kl-values")
    assert found.verdict == "timed_out"
    assert "Is there a loop that never ends?" in found.message


def test_what_a_function_prints_or_warns_is_dropped(
    kernel: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    noise = "    import sys, warnings; print(1); print(2, file=sys.stderr); warnings.warn('3')\n    log_ratio"
    kernel(lambda text: text.replace("    log_ratio", noise, 1))
    assert live.score(NAME, "kl-values") == 3.0
    seen = capsys.readouterr()
    assert seen.err == ""
    assert [line[:4] for line in seen.out.splitlines() if line[0] != " "] == ["PASS"]


def test_generators_and_switches_are_left_as_they_were(kernel: Callable[..., None]) -> None:
    kernel(lambda text: text.replace("    log_ratio = ref", "    torch.set_grad_enabled(True)\n    log_ratio = ref"))
    torch.manual_seed(12345)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with torch.no_grad():
        assert live.score(NAME, "kl-values") == 3.0
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_functions_imported_from_a_module_are_checked_there(
    kernel: Callable[..., None], solution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("my_answers")
    monkeypatch.setitem(sys.modules, "my_answers", module)
    exec(compile(solution, "my_answers.py", "exec"), module.__dict__)
    main = types.ModuleType("__main__")
    main.__dict__.update(vars(module), __name__="__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    most = find_assignment(KIT, NAME).item("loop-ratio").points
    assert live.score(NAME, "loop-ratio") == most  # stand-ins are put where the loop looks for them


def test_fault_of_the_checker_is_loud_and_no_zero(kernel: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError("no memory left")

    monkeypatch.setattr(live.Kernel, "run", fail)
    with pytest.raises(GraderFault, match="no fault of your work"):
        live.score(NAME, "kl-values")
