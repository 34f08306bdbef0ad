"""What goes back to a browser, with the headers that every reply has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
ALWAYS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # a form has to say where it comes from; no other place learns the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Connection": "close",
}


@dataclass(frozen=True)
class Reply:
    """One answer; `policy` is what its page may do."""

    status: int
    body: bytes
    kind: str
    policy: str = NOTHING
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_headers(self) -> dict[str, str]:
        """Every header, in the order in which they are sent."""
        own = {"Content-Type": self.kind, "Content-Length": str(len(self.body))}
        return own | ALWAYS | {"Content-Security-Policy": f"{self.policy}; frame-ancestors 'none'"} | dict(self.more)


def plain(status: int, sentence: str) -> Reply:
    """A sentence, for whoever is not answered."""
    return Reply(status, f"{sentence}\n".encode(), "text/plain; charset=utf-8")


def data(found: object) -> Reply:
    """JSON, for the script of a page."""
    return Reply(200, json.dumps(found).encode(), "application/json")


def moved(place: str) -> Reply:
    """The way to another page, after a form was taken."""
    return Reply(303, b"", "text/plain; charset=utf-8", more={"Location": place})
