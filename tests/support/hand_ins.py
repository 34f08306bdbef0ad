"""What students hand in, made for tests: modules, notebooks, zips, folders of them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission

MODULE = "policy_gradient"
PY, IPYNB = f"{MODULE}.py", f"{MODULE}.ipynb"
HANDOUT = '''"""The handout."""
import torch
from sorting_task import Model


def compute_deltas(rewards, mode):
    """Return the deltas."""
    raise NotImplementedError("compute_deltas")


def compute_loss(log_probs, deltas):
    """Return the loss."""
    raise NotImplementedError("compute_loss")
'''
ANSWER = HANDOUT.replace('raise NotImplementedError("compute_loss")', "return -(log_probs * deltas).mean()")


def notebook(*cells: object, **more: object) -> str:
    """A notebook of format 4 with these code cells, or whole cells."""
    bare = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    written = [
        {**bare, "id": f"c{at}", "source": cell} if isinstance(cell, str) else cell for at, cell in enumerate(cells)
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": written, **more})


def zipped(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def put(path: Path, content: str | bytes = ANSWER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def put_all(folder: Path, files: Mapping[str, str | bytes], packed: bool = False) -> Path:
    """Files in a folder of that name, or in a zip of that name."""
    if packed:
        return put(folder.with_suffix(".zip"), zipped(files))
    for name, content in files.items():
        put(folder / name, content)
    return folder


def read_one(path: Path, untouched: str = "") -> Submission:
    """What `read` says of the one candidate at `path`; each of its sentences is one."""
    [candidate] = find([path], MODULE)
    result = read(candidate, MODULE, untouched)
    assert bool(result.source) != bool(result.problem or result.fault)
    json.dumps([result.student, result.path, result.problem, result.fault, *result.notes]).encode()
    for sentence in (result.problem, result.fault):
        assert "\n" not in sentence
        assert sentence == "" or sentence.endswith(".")
    return result
