"""The explorer's server: one page, and a workbench behind a few JSON addresses; for this machine alone."""

from __future__ import annotations

import base64
import json
import math
import socket
import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import BoundedSemaphore, Lock
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from torch import Tensor

from vcnef.explorer.downloads import FORMATS
from vcnef.explorer.questions import Ask
from vcnef.explorer.turns import Answering, OutdatedQuestionError, StoppedError
from vcnef.explorer.workbench import Answer, Workbench
from vcnef.grid import axes
from vcnef.suggest import suggestion

PAGE = Path(__file__).parent / "page"
FILES = MappingProxyType(
    {
        "/": ("index.html", "text/html; charset=utf-8"),
        "/explorer.css": ("explorer.css", "text/css; charset=utf-8"),
        "/explorer.js": ("explorer.js", "text/javascript; charset=utf-8"),
        "/numbers.js": ("numbers.js", "text/javascript; charset=utf-8"),
    }
)
"""All that is ever read from the disk for a page."""
HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
"""Addresses that stand for all of a machine, and are no name of it."""
BODY_LIMIT = 2**20
MOST_CONNECTIONS = 512
"""At once; a browser keeps some for each page."""
JSON = "application/json"


class ExplorerServer(ThreadingHTTPServer):
    """Serves a workbench at `host` and `port` (0: any free one); `url` is where.

    Only questions that are addressed to one of `hosts` are answered: `host`, the names of this machine for itself, and
    `allow`. A page of another site may reach this port, but not under one of these names.
    """

    daemon_threads = True
    request_queue_size = 128  # connections that wait to be taken; the rest are reset, and the default is 5

    def __init__(
        self, workbench: Workbench, host: str = "127.0.0.1", port: int = 8765, allow: Sequence[str] = ()
    ) -> None:
        self.workbench, self.answering, self.exporting = workbench, Answering(), Lock()
        self._room = BoundedSemaphore(MOST_CONNECTIONS)
        address = host.lower().strip("[]")
        self.hosts = LOCAL | {name.lower().strip("[]") for name in (address, *allow)} - EVERYWHERE
        self.address_family = socket.AF_INET
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((address, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = str(error).rstrip(".")
            raise OSError(f"Cannot serve at {host}:{port}: {reason}. Choose another --port or --host.") from None
        named = address
        if address in EVERYWHERE:
            named = "localhost"
        elif ":" in address:
            named = f"[{address}]"
        self.url = f"http://{named}:{self.server_address[1]}/"

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the network for this machine's name.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Each connection has a thread; of more than enough the rest are closed at once."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over pages that were closed, which is no failure of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One request. Whatever goes wrong is answered as JSON with one sentence."""

    server: ExplorerServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "vcnef", ""
    default_request_version = "HTTP/1.0"  # what is no HTTP gets a head too, unlike the 0.9 it would be taken for
    timeout = 60.0
    disable_nagle_algorithm = True  # a body that follows its head at once would wait 40 ms

    def do_GET(self) -> None:
        self._reply(self._get)

    def do_POST(self) -> None:
        self._reply(self._post)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer other methods, and what is no HTTP, in JSON too; the base class sends a page."""
        self.close_connection = True  # what follows is not read
        reason = message or HTTPStatus(code).phrase
        self._send(*_error(code, f"{reason}. The explorer answers GET and POST of HTTP/1.1."))

    def log_message(self, *arguments: Any) -> None:
        """Log nothing: a local tool has no access log."""

    def _reply(self, answer: Any) -> None:
        try:
            self._check_sender()
            with self.server.answering.one():
                status, kind, body = answer()
        except _RefusedError as error:
            status, kind, body = _error(error.status, str(error))
        except OutdatedQuestionError as error:
            status, kind, body = _error(409, str(error))
        except StoppedError as error:
            status, kind, body = _error(503, str(error))
        except ValueError as error:
            status, kind, body = _error(400, str(error))
        except Exception as error:
            lines = str(error).splitlines() or [type(error).__name__]
            status, kind, body = _error(500, f"The computation failed: {lines[0]}")
        self._send(status, kind, body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # the page has gone on to another question

    def _check_sender(self) -> None:
        """Refuse pages of other sites, which may reach a local port under their own name."""
        if self._is_ambiguous():
            self.close_connection = True
            raise _RefusedError(400, "The request says twice to whom it goes or where it ends. Send each header once.")
        senders = [f"//{self.headers.get('Host', '')}"]
        if "Origin" in self.headers:
            senders.append(self.headers["Origin"])
        for sender in senders:
            if _host(sender) not in self.server.hosts:
                self.close_connection = True
                raise _RefusedError(
                    403,
                    "This address is not the explorer's. Open it under the one it was started with, or start it with "
                    "--allow-host and this name.",
                )

    def _is_ambiguous(self) -> bool:
        """Return whether a proxy in between could read the request in another way than this server."""
        repeated = any(len(self.headers.get_all(name, [])) > 1 for name in ("Host", "Content-Length"))
        return repeated or "Transfer-Encoding" in self.headers

    def _get(self) -> tuple[int, str, bytes]:
        path = self.path.split("?")[0]
        if path == "/api/models":
            return _json(self.server.workbench.models())
        if path == "/favicon.ico":
            return 204, "image/x-icon", b""
        if path not in FILES:
            raise _RefusedError(404, "There is nothing at this address.")
        name, kind = FILES[path]
        return 200, kind, (PAGE / name).read_bytes()

    def _post(self) -> tuple[int, str, bytes]:
        action = {"/api/predict": self._predict, "/api/solve": self._solve, "/api/export": self._export}.get(self.path)
        asked = self._body()
        if action is None:
            raise _RefusedError(404, "There is nothing at this address.")
        return action(asked, self.server.workbench.read(asked))

    def _body(self) -> Mapping[str, Any]:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = -1
        if not 0 <= length <= BODY_LIMIT:
            self.close_connection = True  # what follows is not read
            status = 413 if length > BODY_LIMIT else 411
            raise _RefusedError(status, f"A question may have at most {BODY_LIMIT} bytes, and must say how many.")
        raw = self.rfile.read(length)
        if self.headers.get_content_type() != JSON:
            raise _RefusedError(415, f"A question must be sent as {JSON}.")
        try:
            asked = json.loads(raw)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            raise ValueError("The question is not a JSON object.")
        return asked

    def _predict(self, asked: Mapping[str, Any], ask: Ask) -> tuple[int, str, bytes]:
        return _json(_describe(self.server.workbench.predict(ask)))

    def _solve(self, asked: Mapping[str, Any], ask: Ask) -> tuple[int, str, bytes]:
        solved = self.server.workbench.solve(ask)
        return _json(_describe(solved) | {"reference": solved.reference, "nrmse": self.server.workbench.errors(ask)})

    def _export(self, asked: Mapping[str, Any], ask: Ask) -> tuple[int, str, bytes]:
        wanted = str(asked.get("format"))
        if wanted not in FORMATS:
            raise ValueError(f"There is no format {wanted!r}. {suggestion(wanted, FORMATS)}")
        kind, write = FORMATS[wanted]
        shown = self.server.workbench.shown(ask)
        # To write half a million rows is work too: one file at a time.
        with self.server.exporting:
            return 200, kind, write(self.server.workbench.problem(ask), *shown)


class _RefusedError(Exception):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def _host(address: str) -> str | None:
    """Return the name in "//name:port" or "http://name:port", in small letters."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _describe(answer: Answer) -> dict[str, Any]:
    """Return an answer for a page: arrays are single precision, little-endian, in base 64."""
    question = answer.question
    return {
        "t": _packed(question.t),
        "x": [_packed(line) for line in axes(question.grid)],
        "u": _packed(answer.u[0]),
        "shape": list(answer.u.shape[1:]),
        "ms": 1000 * answer.seconds,
        "warnings": list(answer.warnings),
    }


def _packed(values: Tensor) -> str:
    return base64.b64encode(values.numpy().astype("<f4", order="C").tobytes()).decode()


def _json(content: Any) -> tuple[int, str, bytes]:
    return 200, f"{JSON}; charset=utf-8", json.dumps(_finite(content)).encode()


def _error(status: int, sentence: str) -> tuple[int, str, bytes]:
    return status, f"{JSON}; charset=utf-8", json.dumps({"error": sentence}).encode()


def _finite(content: Any) -> Any:
    """JSON has no NaN; a number that is none becomes null."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    if isinstance(content, float | np.floating):
        return float(content) if math.isfinite(content) else None
    return content
