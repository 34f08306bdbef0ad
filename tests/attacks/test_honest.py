"""Honest code never suffers: whatever homework does gives the same verdicts and bits inside all walls and without."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.numpy
from all_assignments import fixtures_of
from graded_folder import without_times
from lengths import in_short
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import find_assignment, find_assignments
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import SandboxError
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
FIXTURES = fixtures_of(ASSIGNMENT.name)
SOLUTION = solution_source(ASSIGNMENT)
PROBES = "def call(student, inputs, params):\n    return {'y': student.work()}, {}\n"
LEVELS = ("strict" if sys.platform == "linux" else "best", "none")

# What homework does; each `work` returns a tensor.
HONEST = {
    "prints and a progress bar": """
        import sys
        from tqdm.auto import tqdm
        def work():
            for step in tqdm(range(2000), desc="epoch"):
                print("step", step, "loss", step / 7, flush=step % 100 == 0)
                print("to the other stream", file=sys.stderr)
            return torch.rand(5)
    """,
    "seeds": """
        import random
        import numpy
        def work():
            torch.manual_seed(7); numpy.random.seed(8); random.seed(9)
            generator = torch.Generator().manual_seed(10)
            drawn = [random.random(), numpy.random.rand(), numpy.random.default_rng(1).normal()]
            return torch.cat([torch.tensor(drawn), torch.randn(4), torch.randperm(4, generator=generator)])
    """,
    "global state and determinism": """
        import functools
        torch.set_default_dtype(torch.float64)
        torch.set_printoptions(precision=10)
        torch.autograd.set_detect_anomaly(True)
        torch.use_deterministic_algorithms(True)
        counter = 0
        @functools.lru_cache
        def once():
            global counter
            counter += 1
            return torch.ones(3, dtype=torch.float64) / 3
        def work():
            return once() + once().cumsum(0) * counter
    """,
    "a figure in memory": """
        import io
        import matplotlib.pyplot as plt
        def work():
            plt.plot([1, 4, 9], label="reward")
            plt.legend()
            image = io.BytesIO()
            plt.savefig(image, metadata={"Software": None})
            plt.close("all")
            return torch.tensor(list(image.getvalue()), dtype=torch.uint8)
    """,
    "threads, of which one is left, and four in torch": """
        import threading, time
        from concurrent.futures import ThreadPoolExecutor
        def part(start):
            generator = torch.Generator().manual_seed(start)
            return torch.randn(50, 50, generator=generator) @ torch.ones(50)
        def work():
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            with ThreadPoolExecutor(8) as threads:
                parts = torch.stack(list(threads.map(part, range(16))))
            torch.set_num_threads(4)
            left, right = torch.rand(300, 300, requires_grad=True), torch.rand(300, 300)
            ((left @ right).softmax(-1).log().sum() + torch.rand(10**6).exp().sum()).backward()
            return torch.cat([parts.flatten(), left.grad.flatten(), torch.tensor([float(torch.get_num_threads())])])
    """,
    "a gigabyte of memory": """
        def work():
            large = torch.ones(2**28)
            return torch.stack([large.sum(), large[::4096].mean()])
    """,
    "training, saving to memory and copying": """
        import copy, io, pickle
        def work():
            model = torch.nn.Sequential(torch.nn.Embedding(5, 10), torch.nn.Linear(10, 5))
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
            for _ in range(20):
                optimizer.zero_grad()
                log_probs = model(torch.randint(5, (4, 3))).log_softmax(-1)
                torch.einsum("bpv,bpv->", log_probs.exp(), log_probs).backward()
                optimizer.step()
            buffer = io.BytesIO()
            torch.save(model.state_dict(), buffer)
            buffer.seek(0)
            other = copy.deepcopy(model)
            other.load_state_dict(torch.load(buffer))
            return pickle.loads(pickle.dumps(other(torch.arange(5)).detach()))
    """,
    "modules imported late, and torch's compiler": """
        def work():
            import dataclasses, decimal, fractions, itertools, statistics, unittest
            from einops import rearrange
            import torch.distributions, torch.nn.utils.rnn
            from torch import func
            spread = statistics.stdev([1, 2, 4]) + float(decimal.Decimal(1) / 3) + float(fractions.Fraction(1, 7))
            probs = torch.distributions.Categorical(logits=torch.ones(4)).probs
            return func.grad(lambda x: x.square().sum())(rearrange(probs * spread, "(a b) -> a b", a=2))
    """,
}


def open_sandbox(level: str) -> Sandbox:
    try:
        return Sandbox(isolation=level)  # type: ignore[arg-type]
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[tuple[Sandbox, Sandbox]]:
    """Inside all walls, and without."""
    with open_sandbox(LEVELS[0]) as walled, open_sandbox(LEVELS[1]) as bare:
        yield walled, bare


def run(sandbox: Sandbox, source: str) -> Outcome:
    program = Program("homework", "import torch\n" + textwrap.dedent(source), {}, PROBES)
    request = Request("item", "work", "call", {}, safetensors.numpy.save({}), 60.0)
    return sandbox.run(program, [request], load_timeout=60.0)[0]


def bits(outcome: Outcome) -> tuple[str, tuple[int, ...], bytes]:
    assert outcome.status == "observed", outcome
    assert outcome.observation is not None
    returned = outcome.observation.returned["y"]
    assert returned.array is not None, returned
    return returned.dtype, returned.shape, returned.array.tobytes()


@pytest.mark.parametrize("habit", in_short(HONEST, 2))
def test_habit_gives_same_bits_inside_all_walls(sandboxes: tuple[Sandbox, Sandbox], habit: str) -> None:
    walled, bare = (bits(run(sandbox, HONEST[habit])) for sandbox in sandboxes)
    assert walled == bare


NOISE = """
import logging, random, sys, threading, warnings
import matplotlib.pyplot as plt
import numpy
from tqdm.auto import tqdm

print("importing")
warnings.warn("a warning at import")
torch.manual_seed(1); numpy.random.seed(2); random.seed(3)
torch.set_default_dtype(torch.float64)
torch.set_num_threads(2)
threading.Thread(target=print, args=("from a thread",)).start()
plt.plot([1, 2, 3])
calls = []
quiet = dict(globals())

def noisy(function):
    def call(*given, **named):
        calls.append(function.__name__)
        for _ in tqdm(range(3)):
            print("calling", function.__name__, len(calls), file=random.choice([sys.stdout, sys.stderr]))
        logging.warning("still here")
        return function(*given, **named)
    return call

for name in ("compute_reward", "compute_deltas", "compute_log_probs", "compute_loss", "compute_kl_penalty"):
    globals()[name] = noisy(quiet[name])
torch.set_default_dtype(torch.float32)
"""
WRONG = "\ndef compute_kl_penalty(log_probs, ref_log_probs):\n    return (log_probs - ref_log_probs).mean()\n"


def grade(sandbox: Sandbox, source: str) -> Report:
    items = [item for item in ASSIGNMENT.items if item.function != "compute_loss"]
    submission = Submission("ada", "ada/policy_gradient.py", "0" * 64, source, "", "")
    return without_times(Grader.of(ASSIGNMENT, FIXTURES).grade(submission, sandbox, items=items))


@pytest.mark.long
def test_noisy_submission_gets_the_quiet_ones_report(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    quiet = grade(sandboxes[1], SOLUTION + WRONG)
    assert {item.function for item in quiet.items if item.verdict != "passed"} == {"compute_kl_penalty"}
    for sandbox in sandboxes:
        noisy = grade(sandbox, SOLUTION + WRONG + NOISE)
        assert replace(noisy, isolation=quiet.isolation) == quiet


@pytest.mark.long
def test_three_gibibytes_are_enough_and_five_refused(sandboxes: tuple[Sandbox, Sandbox]) -> None:
    walled, _ = sandboxes
    asking = "def work():\n    return torch.zeros({} * 2**30, dtype=torch.uint8)[:1].clone()"
    assert run(walled, asking.format(3)).status == "observed"
    if "rlimits" in walled.layers:
        assert run(walled, asking.format(5)).status == "out_of_memory"


@pytest.mark.long
@pytest.mark.parametrize("private", in_short(["kit/site-packages", "kit"]))
def test_library_in_private_folder_is_found(private: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment that the grader runs in may be its owner's alone: mktemp makes such a folder."""
    packages = tmp_path / "kit" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "course_library.py").write_text("NUMBER = 3.0\n", encoding="utf-8")
    (tmp_path / private).chmod(0o700)
    monkeypatch.syspath_prepend(packages)
    source = "def work():\n    import course_library\n    return torch.tensor(course_library.NUMBER)\n"
    for level in LEVELS:
        with open_sandbox(level) as running:
            assert run(running, source).status == "observed", level


@pytest.mark.parametrize("name", in_short([one.name for one in find_assignments(KIT)]))
def test_worker_imports_nothing_anew_for_right_answer(name: str) -> None:
    """What each worker imported anew would cost every submission its time, and break where importing is forbidden."""
    assignment = find_assignment(KIT, name)
    forbidding = """
        import sys
        class Forbidden:
            def find_spec(self, name, path=None, target=None):
                raise RuntimeError(f"{name} is imported in the worker")
        sys.meta_path.insert(0, Forbidden())
    """
    source = solution_source(assignment) + textwrap.dedent(forbidding)
    with open_sandbox("best") as running:
        report = Grader.of(assignment, read_fixtures(assignment, hidden=False)).grade(
            Submission("ada", "ada", "", source), running
        )
    assert [(item.item, item.message) for item in report.items if item.verdict != "passed"] == []
