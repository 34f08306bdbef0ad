"""The server: sockets on 127.0.0.1 and nothing else; requests in, replies out.

Standard library alone: one teaching assistant reads some pages, and every dependency would be one more to trust.
"""

from __future__ import annotations

import http.server
import secrets
import socketserver
import sys
from collections.abc import Callable
from http import HTTPStatus

from autograder.course.serving.gate import MAX_BODY, Gate, Refused, Request
from autograder.course.serving.reply import Reply, plain

Answering = Callable[[Gate, Request], Reply]
SECONDS_TO_SEND = 30
MAX_THROWN_AWAY = 16 * MAX_BODY  # bytes of a body too large that are read, so that its sender hears why


class LiveServer(http.server.ThreadingHTTPServer):
    """Listens on a port of 127.0.0.1; `gate.address` is where a browser begins."""

    allow_reuse_address = sys.platform != "win32"  # where that would let another program take the port

    def __init__(self, answering: Answering, port: int = 0, token: str = "") -> None:
        """Bind the port, 0 for any that is free; raises OSError where it is taken."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.gate = Gate(self.server_port, token or secrets.token_urlsafe(24))
        self.answering = answering

    def server_bind(self) -> None:
        """Bind without asking a name server for this machine's name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away; whatever else happens is told in one line."""
        error = sys.exception() if hasattr(sys, "exception") else None
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"autograder: a request could not be answered ({type(error).__name__}).", file=sys.stderr)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: LiveServer
    timeout = SECONDS_TO_SEND

    def do_GET(self) -> None:
        """Answer, whatever the method: the site tells them apart."""
        self._reply(self._answer())

    do_HEAD = do_POST = do_GET  # noqa: N815

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server itself refuses, in the manner of all replies."""
        self.request_version = getattr(self, "request_version", "HTTP/1.0")
        self._reply(plain(code, HTTPStatus(code).phrase))

    def version_string(self) -> str:
        """What the header Server says."""
        return "autograder"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: an address holds the token."""

    def _answer(self) -> Reply:
        headers = {name.lower(): self.headers.get_all(name) or [] for name in self.headers}
        try:
            request = Request(self.command, self.path, headers)
            self.server.gate.admit(request)  # before a byte of the body is kept
            return self.server.answering(
                self.server.gate, Request(self.command, self.path, headers, self._body(request))
            )
        except Refused as refused:
            return plain(refused.status, str(refused))

    def _body(self, request: Request) -> bytes:
        if request.method != "POST":
            return b""
        length = request.only("content-length") or ""
        if request.only("transfer-encoding") is not None or not (length.isascii() and length.isdigit()):
            raise Refused(411, "A form says how long it is.")
        if len(length) > 12 or int(length) > MAX_BODY:
            if len(length) <= 12 and int(length) <= MAX_THROWN_AWAY:
                self.rfile.read(int(length))
            raise Refused(413, f"A form holds {MAX_BODY:,} bytes at most.")
        return self.rfile.read(int(length))

    def _reply(self, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(reply.status)
        for name, value in reply.all_headers.items():
            self.send_header(name, value)
        self.end_headers()
        if getattr(self, "command", "") != "HEAD":
            self.wfile.write(reply.body)
