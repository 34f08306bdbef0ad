"""Who may ask: whoever holds the token in the address, from this machine, by a page of this server's own.

A page elsewhere can make a browser send requests here, under a name of its own that leads to 127.0.0.1. So a request
must name this server as its host, begin its path with the token, and, where it writes, come from a page of this server.
The token is a part of the path and no cookie: browsers send a cookie of 127.0.0.1 to every port there.
"""

from __future__ import annotations

import hmac
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MAX_BODY = 64 * 1024  # bytes of what a form sends


class Refused(Exception):  # noqa: N818 (an answer, not a fault)
    """A request that is not answered, with the status and the sentence that say so."""

    def __init__(self, status: int, sentence: str) -> None:
        """Keep both for the reply."""
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Request:
    """What came: `headers` by lower-case name, each with all its values."""

    method: str
    target: str
    headers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: bytes = b""

    def only(self, header: str) -> str | None:
        """The value of a header that comes once; None where it does not come. Refused where it comes twice."""
        values = self.headers.get(header, ())
        if len(values) > 1:
            raise Refused(400, f"There are several headers {header}.")
        return values[0] if values else None


@dataclass(frozen=True)
class Asked:
    """What an admitted request asks for: the parts of the path below the token, and the query."""

    parts: tuple[str, ...]
    query: Mapping[str, str]


@dataclass(frozen=True)
class Gate:
    """The only address there is."""

    port: int
    token: str

    @property
    def address(self) -> str:
        """Where a browser begins."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def admit(self, request: Request) -> Asked:
        """What is asked for; raises Refused where the request is not for this server's own pages, or not by them."""
        host = request.only("host")
        if host not in (f"127.0.0.1:{self.port}", f"localhost:{self.port}"):
            raise Refused(421, "This server answers to its own address alone.")
        path, _, query = request.target.partition("?")
        if not path.startswith("/"):
            raise Refused(400, "This is no path.")
        token, *parts = (_part(one) for one in path[1:].split("/"))
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise Refused(404, "There is nothing here: take the address that `autograder serve` printed.")
        if request.method not in ("GET", "HEAD"):
            self._refuse_strangers(request, host)
        if parts and parts[-1] == "":
            parts.pop()
        if any(part == "" for part in parts):
            raise Refused(404, "There is no such page.")
        return Asked(tuple(parts), dict(urllib.parse.parse_qsl(query, max_num_fields=10)))

    def _refuse_strangers(self, request: Request, host: str) -> None:
        if request.only("origin") != f"http://{host}":
            raise Refused(403, "Only a page of this server may write here.")
        if request.only("sec-fetch-site") not in (None, "same-origin"):
            raise Refused(403, "Only a page of this server may write here.")


def form_of(request: Request) -> dict[str, str]:
    """The fields of a form; Refused where the body is none."""
    kind = (request.only("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused(415, "This is no form.")
    try:
        fields = urllib.parse.parse_qsl(
            request.body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        )
    except ValueError:
        raise Refused(400, "This is no form that can be read.") from None
    return dict(fields)


def _part(quoted: str) -> str:
    """One part of a path; Refused where it would be another place, or has what no name of ours has."""
    try:
        part = urllib.parse.unquote(quoted, errors="strict")
    except UnicodeDecodeError:
        raise Refused(404, "There is no such page.") from None
    if part in (".", "..") or any(mark in part for mark in "/\\\0") or not part.isprintable():
        raise Refused(404, "There is no such page.")
    return part
