"""A local page for trying out kernels: paste one, choose a GPU, vary occupancy, λ and Λ, and see the effect.

For one user on one machine: it listens only on the loopback interface, and every request must carry its token.
"""

from __future__ import annotations

import json
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from typing import Any, cast

from ...errors import UsageError
from .asked import MOST_AT_ONCE, MOST_BODY, READ_SECONDS, ServeLimits, read_request
from .change import page
from .worker import Worker

# Access control: every request is checked before any costly work.
#
# Any page open in a browser can send requests to this machine, by its address or (DNS rebinding) by a name of its own
# that resolves here. So `Host` must be this server's own name, `Origin`, if present, its own origin, and the path
# must begin with the token, which only the user knows. No response permits another origin to read it.


VERBS = ("analyze", "resimulate")


class Handler(BaseHTTPRequestHandler):
    """One connection with one request."""

    timeout = READ_SECONDS
    server_version = "drywarp"
    sys_version = ""

    def setup(self) -> None:
        """Start the deadline within which the complete request must arrive, however fragmented."""
        super().setup()
        self._deadline = Timer(READ_SECONDS, self._hang_up)
        self._deadline.daemon = True
        self._deadline.start()

    def finish(self) -> None:
        """Cancel the deadline."""
        self._deadline.cancel()
        super().finish()

    def do_GET(self) -> None:
        """Serve the page, only at the address with the token."""
        if (rest := self._allowed()) is None:
            return
        if rest == "":
            self._send(HTTPStatus.OK, self._own.page, "text/html; charset=utf-8")
        elif rest in VERBS:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, f"/{rest} requires POST", allow="POST")
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "no such page")

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        """Handle an analysis or a slider move."""
        if (rest := self._allowed()) is None:
            return
        if rest not in VERBS:
            status = HTTPStatus.NOT_FOUND if rest else HTTPStatus.METHOD_NOT_ALLOWED
            self._refuse(status, "expected /analyze or /resimulate", allow="" if rest else "GET, HEAD")
            return
        body = self._body()
        if body is None:
            return
        self._deadline.cancel()
        try:
            request = read_request(rest, body)
        except UsageError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        code, answer = self._own.worker.ask(request)
        self._send(code, answer, "application/json")

    def _other(self) -> None:
        if self._allowed() is not None:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, f"{self.command} is not supported", allow="GET, HEAD, POST")

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _other  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, since addresses contain the token."""

    def version_string(self) -> str:
        """Reveal no version."""
        return self.server_version

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send errors of the base class as JSON, without echoing the request."""
        self._refuse(code, HTTPStatus(code).phrase)

    @property
    def _own(self) -> Server:
        return cast(Server, self.server)

    def _allowed(self) -> str | None:
        """The path after the token; None if the request was refused."""
        hosts = self._own.hosts
        if self.headers.get_all("Host") not in [[host] for host in hosts]:
            self._refuse(HTTPStatus.FORBIDDEN, "unknown host name")
            return None
        origins = self.headers.get_all("Origin") or []
        site = self.headers.get("Sec-Fetch-Site", "none")
        if any(origin not in [f"http://{host}" for host in hosts] for origin in origins):
            self._refuse(HTTPStatus.FORBIDDEN, "cross-origin requests are refused")
            return None
        # Not even a link from another page may open it: the address must be typed, or opened by drywarp.
        if site not in ("none", "same-origin"):
            self._refuse(HTTPStatus.FORBIDDEN, "cross-site requests are refused")
            return None
        _, token, *rest = [*self.path.split("?", 1)[0].split("/", 2), ""]
        if not compare_digest(token.encode("utf-8", "replace"), self._own.token.encode()):
            self._refuse(HTTPStatus.NOT_FOUND, "no such page (expected the address that drywarp serve printed)")
            return None
        return rest[0]

    def _body(self) -> bytes | None:
        """The body of a POST; None if it was refused."""
        kind = (self.headers.get("Content-Type") or "").split(";")[0].strip().lower()
        lengths = self.headers.get_all("Content-Length") or []
        if kind != "application/json":  # cannot be sent by a form on another page
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected Content-Type: application/json")
        elif self.headers.get("Transfer-Encoding") or len(lengths) != 1 or not _is_length(lengths[0]):
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "expected one Content-Length")
        elif int(lengths[0]) > MOST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"expected at most {MOST_BODY:,} bytes")
        else:
            body = self.rfile.read(int(lengths[0]))
            if len(body) == int(lengths[0]):
                return body
            self._refuse(HTTPStatus.BAD_REQUEST, "incomplete request")
        return None

    def _refuse(self, status: int, message: str, allow: str = "") -> None:
        self._send(status, json.dumps({"error": message}).encode(), "application/json", allow)

    def _send(self, status: int, body: bytes, kind: str, allow: str = "") -> None:
        self.close_connection = True
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", self._own.policy),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "DENY"),
            *([("Allow", allow)] if allow else []),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12


HOST = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """One thread per connection, up to a limit; further connections are refused immediately."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, port: int, limits: ServeLimits) -> None:
        self.token = secrets.token_urlsafe(24)
        self.page, self.policy = page()
        self._room = BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((HOST, port), Handler)
        self.worker = Worker(limits)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which a browser on this machine reaches this server; any other `Host` is foreign."""
        return tuple(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    @property
    def url(self) -> str:
        """The page's address, including the token."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in its own thread, or refuse it if there are too many."""
        if not self._room.acquire(blocking=False):
            refusal = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            with suppress(OSError):
                request.settimeout(1.0)
                request.sendall(refusal)
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Respond, then free the slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections; report any other error in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"drywarp: serve: {type(error).__name__}: {error}", file=sys.stderr)

    def server_bind(self) -> None:
        """Like the base class, but without a DNS lookup of this machine's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = HOST, self.server_address[1]

    def server_close(self) -> None:
        """Stop listening, and abort a running analysis."""
        super().server_close()
        if hasattr(self, "worker"):  # not set yet if the port was taken
            self.worker.close()


def open_server(port: int = 0, limits: ServeLimits | None = None) -> Server:
    """A listening server; port 0 picks a free one. Raises UsageError if the port is taken."""
    try:
        return Server(port, limits or ServeLimits())
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--port {port}: cannot listen on {HOST} ({reason})") from None


def serve(port: int, limits: ServeLimits, browser: bool, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. `say` receives the page's address."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with open_server(port, limits) as server:
        before = signal.signal(signal.SIGTERM, stop)
        try:
            say(server.url)
            threading.Thread(target=server.worker.start, daemon=True).start()
            if browser:
                threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)


__all__ = ["ServeLimits", "open_server", "serve"]
