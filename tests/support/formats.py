"""Schemas of the platforms' formats, written from their documentation, and what is held against them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from places import SCHEMAS


def validate(found: Any, schema: str) -> None:
    text = (SCHEMAS / f"{schema}.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(json.loads(text)).validate(found)
