from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from all_assignments import ASSIGNMENTS
from observed import tensor

from autograder.authoring.fixtures.stored_set import manifest_text
from autograder.grading.assignment import Assignment, load_assignment
from autograder.grading.fixtures import Case, Expectation, decode, encode, read_fixtures
from autograder.grading.judging import Judged, withhold
from autograder.sandbox.calls import Array, Observation
from autograder.vocabulary.errors import FixtureError

HERE = Path("here.safetensors")
ITEMS = """\
assignment = "demo"
title = "A demonstration"
module = "demo"
given = []
load_timeout = 20

[[item]]
id = "first"
function = "f"
title = "the first thing"
points = 3
timeout = 5
hint = "What is f?"
public = ["first-small"]
hidden = ["first-wide"]

[[item]]
id = "second"
function = "f"
title = "the second thing"
points = 3
timeout = 5
hint = "What is f again?"
public = ["second-small", "second-more"]
"""


def expectation(kind: Any = "value", name: str = "out", array: Array | None = None, **more: Any) -> Expectation:
    return Expectation(kind, name, f"what {name} is", array=array, **more)


def case(name: str = "first-small", *expected: Expectation, **more: Any) -> Case:
    item = name.split("-")[0]
    inputs = {"x": np.arange(6.0).reshape(2, 3)}
    plain = Case(name, item, "f", f"title of {name}", "public", "probe", {}, inputs, expected or (VALUE,), {})
    return replace(plain, **more)


VALUE = expectation(array=np.array([[1.5, -2.0, 0.25]]), axes=("batch", "trial"), dtype="float64", rtol=1e-6, atol=1e-8)


# Encoding and decoding


@pytest.mark.parametrize(
    "array",
    [
        np.array([1.5, np.nan, -np.inf, np.inf, -0.0]),
        np.array([[2**62 + 1, -(2**63)]]),
        np.array(3.25, dtype=np.float32),
        np.array(7),
        np.zeros((2, 0, 3)),
        np.array([True, False]),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(24.0).reshape(4, 6)[::-2, ::3],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.broadcast_to(np.array([1.0, 2.0]), (3, 2)),
    ],
)
def test_array_comes_back_bit_for_bit_wherever_it_is_stored(array: Array) -> None:
    stored = case(
        "c", replace(VALUE, array=array), inputs={"x": array}, mistakes={"w": Observation({"out": tensor(array)}, {})}
    )
    (read,) = decode(encode([stored]), HERE)
    assert (read.expected, read.mistakes) == (stored.expected, stored.mistakes)
    wrong = read.mistakes["w"]
    assert isinstance(wrong, Observation)
    again = safetensors.numpy.load(stored.encoded_inputs)["x"]
    for found in (read.inputs["x"], read.expected[0].array, wrong.returned["out"].array, again):
        assert found is not None
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_keys_of_an_argument_keep_their_order() -> None:
    (read,) = decode(encode([case("c", VALUE, params={"given": {"counts": {"tea": 1, "an": 1}}})]), HERE)
    assert [*read.params["given"]["counts"]] == ["tea", "an"]


@pytest.mark.parametrize("assignment", ASSIGNMENTS, ids=lambda one: one.name)
def test_stored_cases_come_back_as_they_were(assignment: Assignment) -> None:
    paths = [path for path in assignment.folder.glob("*/*.safetensors") if path.parent.name in ("public", "hidden")]
    assert paths
    for path in paths:
        data = path.read_bytes()
        cases = decode(data, path)
        assert encode(cases) == data


# What is not a file of cases


DATA = encode(
    [
        case("c", VALUE, expectation("fact", "calls", value=3, message="{expected}"), params={"mode": "naive"}),
        case("d", mistakes={"wrong": Observation({"out": tensor(np.ones(2))}, {"calls": 2})}),
    ]
)


def stored_with(**changed: Any) -> bytes:
    """The file DATA with another description of its first case."""
    described = [{**DESCRIBED[0], **changed}, *DESCRIBED[1:]]
    return safetensors.numpy.save(safetensors.numpy.load(DATA), metadata={"cases": json.dumps(described)})


HEADER = json.loads(DATA[8 : 8 + int.from_bytes(DATA[:8], "little")])
DESCRIBED = json.loads(HEADER["__metadata__"]["cases"])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 8,
        b"\xff" * 64,
        DATA[:-1],
        DATA + b"\x00",
        safetensors.numpy.save({"c/input/x": np.ones(2)}),
        safetensors.numpy.save({}, metadata={"cases": "[" * 100_000}),
        safetensors.numpy.save({}, metadata={"cases": '{"case": 1}'}),
        stored_with(inputs=["y"]),
        stored_with(expected=[{**DESCRIBED[0]["expected"][0], "name": "elsewhere"}]),
    ],
)
def test_what_encode_did_not_make_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(FixtureError, match=r"^here\.safetensors does not hold stored cases: "):
        decode(data, HERE)


# A stored set and its manifest


@pytest.fixture
def demo(tmp_path: Path) -> Assignment:
    """An assignment of two items with a public file each and one hidden file."""
    folder = tmp_path / "fixtures" / "demo"
    for name in ("public", "hidden"):
        (folder / name).mkdir(parents=True)
    (folder / "items.toml").write_text(ITEMS)
    (folder / "probes.py").write_text("def probe(student, inputs, params): ...\n")
    stored = {
        "public/second.safetensors": encode([case("second-more"), case("second-small")]),
        "public/first.safetensors": encode([case("first-small")]),
        "hidden/first.safetensors": encode([case("first-wide", visibility="hidden")]),
    }
    for name, data in stored.items():
        (folder / name).write_bytes(data)
    assignment = load_assignment(folder)
    write_manifest(assignment)
    return assignment


def write_manifest(demo: Assignment, folder: Path | None = None, **changes: Any) -> None:
    """List what `folder` holds, as the build does, with entries changed by hand."""
    folder = folder or demo.folder
    found = [*folder.glob("*/*.safetensors"), folder / "items.toml", folder / "probes.py"]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
    manifest = json.loads(manifest_text(demo, files, {"slip": "Did you slip?"}))
    (folder / "manifest.json").write_text(json.dumps({**manifest, **changes}))


def refusal(assignment: Assignment, **options: Any) -> str:
    with pytest.raises(FixtureError) as caught:
        read_fixtures(assignment, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_public_reading_opens_no_hidden_file_which_else_is_named(demo: Assignment) -> None:
    shutil.rmtree(demo.folder / "hidden")
    stored = read_fixtures(demo, hidden=False)
    assert [one.id for one in stored.cases] == ["first-small", "second-small", "second-more"]
    assert re.fullmatch(
        r"\S+hidden/first\.safetensors cannot be read: No such file or directory\. Run `autograder fixtures "
        r"regenerate` to make the fixtures\.",
        refusal(demo),
    )


@pytest.mark.parametrize(
    "name",
    ["public/first.safetensors", "public/second.safetensors", "hidden/first.safetensors", "items.toml", "probes.py"],
)
def test_file_that_manifest_does_not_know_is_refused_by_name(demo: Assignment, name: str) -> None:
    path = demo.folder / name
    path.write_bytes(path.read_bytes() + b" ")
    message = refusal(demo)
    assert message.startswith(f"{path} is not the file that ")
    assert message.endswith("(its SHA-256 differs). Restore it, or run `autograder fixtures regenerate`.")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": 1, "assignment": "demo", "files": [], "hints": {}}',
        b'{"schema": 1, "assignment": "demo", "files": {"items.toml": "", "probes.py": ""}, "hints": []}',
        b'{"schema": 2, "assignment": "demo", "files": {"items.toml": "", "probes.py": ""}, "hints": {}}',
        b'{"schema": 1, "assignment": "demo", "files": {"items.toml": ""}, "hints": {}}',
    ],
)
def test_what_is_not_manifest_is_refused(demo: Assignment, text: bytes) -> None:
    (demo.folder / "manifest.json").write_bytes(text)
    assert re.search(r"manifest\.json is not a manifest of fixtures\. Restore it, or run `", refusal(demo))


@pytest.mark.parametrize(
    "name",
    [
        *("../outside.safetensors", "public/../../outside.safetensors", "public/../hidden/first.safetensors"),
        *("public//first.safetensors", "/etc/passwd", "..\\outside.safetensors", "C:/outside.safetensors", ""),
    ],
)
def test_manifest_that_leads_elsewhere_is_refused_before_anything_is_opened(demo: Assignment, name: str) -> None:
    outside = encode([case("first-small")])
    (demo.folder.parent / "outside.safetensors").write_bytes(outside)
    files = json.loads((demo.folder / "manifest.json").read_text())["files"]
    write_manifest(demo, files={name: hashlib.sha256(outside).hexdigest(), **files})
    message = refusal(demo, hidden=False)
    assert f"manifest.json lists {name!r}, which is not the name of a file in its folder" in message


WIDE = case("first-wide", visibility="hidden")
NOWHERE = "Item {} lists the {} case {}, which no stored file holds."


@pytest.mark.parametrize(
    ("path", "stored", "manifest", "told"),
    [
        ("public/second", case("second-small"), {}, NOWHERE.format("second", "public", "second-more")),
        ("hidden/first", replace(WIDE, visibility="public"), {}, NOWHERE.format("first", "hidden", "first-wide")),
        ("hidden/first", replace(WIDE, item="second"), {}, NOWHERE.format("first", "hidden", "first-wide")),
        ("hidden/first", WIDE, {"assignment": "grpo"}, "demo holds fixtures of 'grpo', not of 'demo'."),
    ],
)
def test_set_that_lacks_a_case_or_is_of_another_assignment_is_refused(
    demo: Assignment, path: str, stored: Case, manifest: dict[str, str], told: str
) -> None:
    (demo.folder / f"{path}.safetensors").write_bytes(encode([stored]))
    write_manifest(demo, **manifest)
    assert refusal(demo).endswith(told)


@pytest.fixture
def spring(demo: Assignment, tmp_path: Path) -> Path:
    """Another term's set."""
    return shutil.copytree(demo.folder, tmp_path / "spring")


@pytest.mark.parametrize("name", ["items.toml", "probes.py"])
def test_term_made_with_other_items_or_probes_is_refused(demo: Assignment, spring: Path, name: str) -> None:
    (spring / name).write_bytes((spring / name).read_bytes() + b"\nspring = 1\n")
    write_manifest(demo, spring)
    assert refusal(demo, folder=spring).startswith(f"{demo.folder / name} is not the file that {spring}")


@pytest.mark.parametrize(
    ("inputs", "numbers"),
    [
        ({"x": np.array([True, False, True])}, frozenset()),  # what its argument would pass
        ({"x": np.array([True, True, True])}, frozenset({0.0, 1.0})),
        ({"x": np.arange(3.0)}, frozenset({0.0, 1.0})),
    ],
)
def test_truth_values_are_judged_beside_truth_values(inputs: dict[str, Array], numbers: frozenset[float]) -> None:
    flags = expectation(array=np.array([True, False, True]), axes=("batch",), dtype="bool")
    assert case("first-small", flags, inputs=inputs).judged_numbers == {"out": numbers}


@pytest.mark.parametrize(
    ("right", "wrong", "counts"),
    [
        ({"level": 1, "an": 1}, {"an": 2}, True),  # words as keys: two of them are right
        ({"removed": 4}, {"removed": 2}, False),  # a driver's keys, which every answer has: one number is right
        ({"removed": 4, "left": 2}, {"removed": 2, "left": 2}, True),
    ],
)
def test_keys_that_tell_answers_apart_are_right_values(right: Any, wrong: Any, counts: bool) -> None:
    def judged(name: str, value: Any, verdict: Any) -> Judged:
        return Judged.of(case(name, expectation("fact", "result", value=value)), verdict, "")

    verdicts = [judged("first-a", right, "passed"), judged("first-b", wrong, "failed"), judged("first-c", {}, "passed")]
    assert withhold({"first": verdicts})["first"][2].passed == counts
