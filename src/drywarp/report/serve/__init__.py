"""A local page for trying out kernels: paste one, choose a GPU, vary occupancy, λ and Λ, and see the effect.

For one user on one machine: it listens only on the loopback interface, and every request must carry its token.
"""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from http.server import ThreadingHTTPServer
from threading import BoundedSemaphore
from typing import Any

from ...errors import UsageError
from .asked import MOST_AT_ONCE, ServeLimits
from .change import page
from .handler import Handler
from .worker import Worker

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
