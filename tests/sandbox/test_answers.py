from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from autograder.sandbox.calls import (
    MAX_DIMENSIONS,
    MAX_LEVELS,
    MAX_NAMES,
    Raised,
    Returned,
    from_frame,
    raised_from_header,
)

NO_TENSORS = safetensors.numpy.save({})
TENSOR = {"kind": "tensor", "dtype": "float32", "shape": [2], "requires_grad": False, "sent": True}
RAISED = {"types": ["ValueError", "Exception"], "message": "no such mode", "line": 12, "code": "raise ValueError"}


def header(facts: Any = None, **returned: Any) -> dict[str, Any]:
    return {"op": "observed", "returned": returned, "facts": {} if facts is None else facts}


def blob(**arrays: Any) -> bytes:
    return safetensors.numpy.save({name: np.asarray(array) for name, array in arrays.items()})


def raw_blob(dtype: str, shape: list[int], data: bytes) -> bytes:
    """A safetensors file with one tensor `x`, of types that numpy has no name for too."""
    table = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
    return len(table).to_bytes(8, "little") + table + data


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


# What an honest worker sends


def test_nan_and_infinity_arrive_as_they_are() -> None:
    array = from_frame(header(y=TENSOR), blob(y=np.array([math.nan, -math.inf], np.float32))).returned["y"].array
    assert array is not None
    assert math.isnan(array[0])
    assert array[1] == -math.inf


def test_unsent_tensor_is_described() -> None:
    described = {**TENSOR, "dtype": "bfloat16", "shape": [2**40], "sent": False}
    assert from_frame(header(y=described), NO_TENSORS).returned["y"] == Returned(
        "tensor", "Tensor", "bfloat16", (2**40,)
    )
    assert from_frame(header(y=described), NO_TENSORS).returned["y"].array is None


def test_a_tensor_that_nobody_described_is_ignored() -> None:
    assert from_frame(header(), blob(extra=np.array([1], np.float32))).returned == {}


# What nobody should believe


@pytest.mark.parametrize(
    "described",
    [
        {**TENSOR, "dtype": "float64"},
        {**TENSOR, "dtype": "int32"},
        {**TENSOR, "shape": [3]},
        {**TENSOR, "shape": [2, 1]},
        {**TENSOR, "shape": []},
    ],
)
def test_a_description_that_contradicts_the_values_is_refused(described: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="contradicts itself"):
        from_frame(header(y=described), blob(y=np.array([1, 2], np.float32)))


def test_complex_values_are_refused() -> None:
    with pytest.raises(ValueError, match="contradicts itself"):
        from_frame(header(y={**TENSOR, "dtype": "complex64"}), blob(y=np.array([1, 2j], np.complex64)))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff" * 64, id="no table"),
        pytest.param(NO_TENSORS[:-1], id="cut short"),
        pytest.param(blob(x=np.zeros(8))[:-1], id="values cut short"),
        pytest.param(raw_blob("BF16", [1], b"\0\0"), id="bfloat16"),
        pytest.param(raw_blob("F8_E4M3", [1], b"\0"), id="float8"),
        pytest.param(raw_blob("F4", [2], b"\0"), id="float4"),
        pytest.param(raw_blob("F128", [1], b"\0" * 16), id="unknown dtype"),
        pytest.param(raw_blob("F32", [2], b"\0" * 4), id="too few bytes"),
        pytest.param(raw_blob("F32", [0, 2**63], b""), id="a size beyond 63 bits"),
        pytest.param(raw_blob("F32", [2**40, 2**40], b""), id="sizes that overflow"),
        pytest.param(raw_blob("F32", [0, 2**62, 2**62], b""), id="empty with sizes that overflow"),
        pytest.param(raw_blob("F32", [-1], b"\0" * 4), id="a negative size"),
        pytest.param(raw_blob("F32", [1] * 100, b"\0" * 4), id="a hundred dimensions"),
    ],
)
def test_bytes_that_hold_no_readable_tensors_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no readable tensors"):
        from_frame(header(), data)


def test_a_table_of_very_many_tensors_is_refused_unread() -> None:
    table = {f"{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(30_000)}
    encoded = json.dumps(table).encode()
    with pytest.raises(ValueError, match="no readable tensors") as caught:
        from_frame(header(), len(encoded).to_bytes(8, "little") + encoded)
    assert "too long" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "described",
    [
        pytest.param(None, id="null"),
        pytest.param([], id="a list"),
        pytest.param("tensor", id="text"),
        pytest.param({}, id="no kind"),
        pytest.param({"kind": ["tensor"]}, id="a kind that is a list"),
        pytest.param({"kind": "module"}, id="an unknown kind"),
        pytest.param({"kind": "other", "type": 3}, id="a type that is a number"),
        pytest.param({"kind": "other", "type": nested(500)}, id="a type that is a deep list"),
        pytest.param({**TENSOR, "dtype": None}, id="a dtype that is null"),
        pytest.param({**TENSOR, "dtype": nested(500)}, id="a dtype that is a deep list"),
        pytest.param({"kind": "tensor", "dtype": "float32"}, id="no shape"),
        pytest.param({**TENSOR, "shape": 2}, id="a shape that is a number"),
        pytest.param({**TENSOR, "shape": "2"}, id="a shape that is text"),
        pytest.param({**TENSOR, "shape": {"0": 2}}, id="a shape that is an object"),
        pytest.param({**TENSOR, "shape": [True]}, id="a size that is a truth value"),
        pytest.param({**TENSOR, "shape": [2.0]}, id="a size that is a float"),
        pytest.param({**TENSOR, "shape": [-1]}, id="a negative size"),
        pytest.param({**TENSOR, "shape": [10**4000]}, id="a size of 4,000 digits"),
        pytest.param({**TENSOR, "shape": [1] * (MAX_DIMENSIONS + 1)}, id="too many dimensions"),
    ],
)
def test_a_description_of_the_wrong_kind_is_refused(described: Any) -> None:
    with pytest.raises(ValueError, match="worker's answer"):
        from_frame(header(y=described), NO_TENSORS)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"returned": {}},
        {"facts": {}},
        {"returned": [], "facts": {}},
        {"returned": {}, "facts": []},
        {"returned": None, "facts": None},
        {"returned": "y", "facts": {}},
    ],
)
def test_an_answer_without_its_parts_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="could not be read"):
        from_frame(answer, NO_TENSORS)


def test_more_names_than_any_probe_returns_are_refused() -> None:
    names = {f"weights {n}": {"kind": "none"} for n in range(MAX_NAMES)}
    assert len(from_frame(header(**names), NO_TENSORS).returned) == MAX_NAMES
    with pytest.raises(ValueError, match="could not be read"):
        from_frame(header(**names, extra={"kind": "none"}), NO_TENSORS)


def test_facts_that_nest_too_deeply_to_be_printed_are_refused() -> None:
    assert from_frame(header({"fact": nested(MAX_LEVELS - 1)}), NO_TENSORS).facts["fact"]
    for facts in ({"fact": nested(MAX_LEVELS)}, {"fact": [1, {"inner": nested(900)}]}):
        with pytest.raises(ValueError, match="nests too deeply"):
            from_frame(header(facts), NO_TENSORS)


def test_long_names_of_types_are_cut() -> None:
    described = {"a": {"kind": "other", "type": "T" * 10**6}, "b": {**TENSOR, "dtype": "d" * 10**6}}
    returned = from_frame(header(**described), NO_TENSORS).returned
    assert len(returned["a"].type) == 80
    assert len(returned["b"].dtype) == 40


# Exceptions


def test_an_exception_keeps_its_types_its_text_and_the_line() -> None:
    assert raised_from_header(RAISED) == Raised(("ValueError", "Exception"), "no such mode", 12, "raise ValueError")


@pytest.mark.parametrize(
    "changed",
    [
        {"types": None},
        {"types": []},
        {"types": "ValueError"},
        {"types": {"ValueError": 1}},
        {"types": ["ValueError", 3]},
        {"types": [["ValueError"]]},
        {"line": True},
        {"line": "12"},
        {"line": 12.0},
        {"line": -1},
        {"line": 10**4000},
        {"line": [12]},
        {"message": None},
        {"message": 3},
        {"message": nested(900)},
        {"code": {"x": 1}},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_an_exception_of_the_wrong_kind_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="worker's answer"):
        raised_from_header({**RAISED, **changed})


def test_whatever_an_exception_carries_little_of_it_is_kept() -> None:
    raised = raised_from_header({"types": ["T" * 1000] * 10**5, "message": "m" * 10**6, "line": 1, "code": "c" * 10**6})
    assert raised.types == ("T" * 80,) * 20
    assert len(raised.message) == 2000
    assert len(raised.code) == 200


@pytest.mark.parametrize(
    ("types", "message", "out_of_memory"),
    [
        (("MemoryError", "Exception"), "", True),
        (("_ArrayMemoryError", "MemoryError", "Exception"), "Unable to allocate 8.00 GiB", True),
        (("RuntimeError",), "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", True),
        (("RuntimeError",), "shapes do not match", False),
        (("ValueError",), "MemoryError", False),
    ],
)
def test_each_library_says_that_memory_ran_out(types: tuple[str, ...], message: str, out_of_memory: bool) -> None:
    assert Raised(types, message, None, "").is_out_of_memory is out_of_memory
