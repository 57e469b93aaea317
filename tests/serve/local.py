"""A server of drywarp's page, in this process, and raw requests to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drywarp.report.serve import ServeLimits, Server, open_server

SAXPY = """// drywarp: --grid 4096 --block 128 --arg n=524288 --arg x=f32[524288]:random --arg y=f32[524288] --arg a=2.0
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


@contextmanager
def running(limits: ServeLimits | None = None) -> Iterator[Server]:
    with open_server(0, limits) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(
    server: Server, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=900)
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def post(server: Server, verb: str, value: Any) -> tuple[int, dict[str, Any]]:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    response, answer = ask(server, "POST", f"/{server.token}/{verb}", body, {"Content-Type": "application/json"})
    told = json.loads(answer)
    if response.status != 200:
        assert set(told) <= {"error", "log"}
        assert "\n" not in told["error"]
        assert "Traceback" not in told["error"]
    return response.status, told


def raw(server: Server, text: bytes) -> bytes:
    """What comes back when these bytes are sent."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=600) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while piece := connection.recv(65536):
            got += piece
        return got
