"""Who may ask the page's server, and what: everything else is refused with one line, before any work is done."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from drywarp.errors import UsageError
from drywarp.report import serve as server_module
from drywarp.report.serve import Handler, Server, open_server
from drywarp.report.serve.asked import MOST_AT_ONCE, MOST_BODY
from tests.counting import no_hang

from .local import SAXPY, ask, post, raw, running

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as found:
        yield found
        assert not found.worker.running, "no request of this file may get as far as an analysis"


def test_the_page_is_at_the_token_alone_and_says_what_a_browser_may_do(server: Server) -> None:
    response, body = ask(server, "GET", f"/{server.token}/")
    assert response.status == 200
    assert b"<textarea" in body
    assert server.token.encode() not in body
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["Access-Control-Allow-Origin"] is None
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert "Python" not in response.headers["Server"]
    head, nothing = ask(server, "HEAD", f"/{server.token}/")
    assert (head.status, nothing) == (200, b"")


def test_it_listens_on_the_loopback_interface(server: Server) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "path",
    [
        "/", "//", "/wrong/", "/wrong/analyze", "/{token}x/", "/{short}/", "/../{token}/", "/%2e%2e/{token}/",
        "/{token}/../../etc/passwd", "/{token}/..%2f..%2fetc%2fpasswd", "/{token}//etc/passwd", "/{token}/serve.js",
        "/{token}/\xe9", "/favicon.ico", "*",
    ],
)  # fmt: skip
def test_other_paths_are_not_there(server: Server, path: str) -> None:
    path = path.format(token=server.token, short=server.token[:-1])
    got = raw(server, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode("latin-1"))
    assert got.split()[1] in (b"404", b"400"), got
    assert b"root:" not in got
    assert server.token.encode() not in got


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_another_host_name_is_refused(server: Server, host: str) -> None:
    """DNS rebinding: a name of the attacker's that leads to this machine."""
    head = {"Host": host.format(port=server.server_port)}
    response, body = ask(server, "GET", f"/{server.token}/", headers=head)
    assert response.status == 403
    assert b"<textarea" not in body


def test_no_host_and_two_hosts_are_refused(server: Server) -> None:
    line = f"GET /{server.token}/ HTTP/1.1\r\n".encode()
    own = f"Host: 127.0.0.1:{server.server_port}\r\n".encode()
    assert b" 403 " in raw(server, line + b"\r\n")
    assert b" 403 " in raw(server, line + own + b"Host: evil.example\r\n\r\n")
    assert b" 200 " in raw(server, line + own + b"\r\n")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "file://"]
)
def test_other_origins_are_refused(server: Server, origin: str) -> None:
    body = json.dumps({"source": SAXPY, "gpu": "a100"}).encode()
    response, answer = ask(server, "POST", f"/{server.token}/analyze", body, {**JSON, "Origin": origin})
    assert response.status == 403
    assert response.headers["Access-Control-Allow-Origin"] is None
    assert "cross-origin" in json.loads(answer)["error"]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_or_form_of_another_site_is_refused(server: Server, site: str) -> None:
    assert ask(server, "GET", f"/{server.token}/", headers={"Sec-Fetch-Site": site})[0].status == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    response, _ = ask(server, method, f"/{server.token}/analyze")
    assert response.status == 405
    assert "POST" in response.headers["Allow"]


def test_methods_belong_to_paths(server: Server) -> None:
    assert ask(server, "GET", f"/{server.token}/analyze")[0].status == 405
    assert ask(server, "POST", f"/{server.token}/", b"{}", JSON)[0].status == 405
    assert ask(server, "POST", f"/{server.token}/else", b"{}", JSON)[0].status == 404
    assert b" 501 " in raw(server, b"BREW / HTTP/1.1\r\n\r\n")


def test_a_form_is_no_json(server: Server) -> None:
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data"):
        response, _ = ask(server, "POST", f"/{server.token}/analyze", b"{}", {"Content-Type": kind})
        assert response.status == 415


@pytest.mark.parametrize(
    ("length", "status"),
    [("", 411), ("Content-Length: -1\r\n", 411), ("Content-Length: 1e3\r\n", 411), ("Content-Length: ²\r\n", 411),
     ("Content-Length: 2\r\nContent-Length: 2\r\n", 411), ("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", 411),
     (f"Content-Length: {MOST_BODY + 1}\r\n", 413), ("Content-Length: 99999999999\r\n", 413),
     ("Content-Length: 50\r\n", 400)],
)  # fmt: skip
def test_lengths(server: Server, length: str, status: int) -> None:
    head = f"POST /{server.token}/analyze HTTP/1.1\r\nHost: localhost:{server.server_port}\r\n"
    got = raw(server, (head + "Content-Type: application/json\r\n" + length + "\r\n{}").encode())
    assert got.split()[1] == str(status).encode(), got


@pytest.mark.parametrize(
    ("verb", "body", "says"),
    [
        ("analyze", b"", "JSON object"),
        ("analyze", b"{", "JSON object"),
        ("analyze", b"\xff\xfe", "UTF-8"),
        ("analyze", b"[" * 100_000, "JSON object"),
        ("analyze", b"[]", "JSON object"),
        ("analyze", b"{}", "source"),
        ("analyze", b'{"source": 1, "gpu": "a100"}', "source"),
        ("analyze", b'{"source": " ", "gpu": "a100"}', "source"),
        ("analyze", b'{"source": "\\ud800", "gpu": "a100"}', "Unicode"),
        ("analyze", b'{"source": "x", "gpu": null}', "gpu"),
        ("analyze", b'{"source": "x", "gpu": "a100", "launch": []}', "launch"),
        ("analyze", b'{"source": "x", "gpu": "a100", "path": "/etc"}', "unknown 'path'"),
        ("analyze", json.dumps({"source": "x" * 300_000, "gpu": "a100"}).encode(), "at most"),
        ("resimulate", b"{}", "number"),
        ("resimulate", b'{"number": true}', "number"),
        ("resimulate", b'{"number": 1, "occupancy": -8}', "occupancy"),
        ("resimulate", b'{"number": 1, "occupancy": 8.5}', "occupancy"),
        ("resimulate", b'{"number": 1, "settled": 1}', "settled"),
        ("resimulate", b'{"number": 1, "lambda": []}', "lambda"),
        ("resimulate", b'{"number": 1, "lambda": {"lsu": "2"}}', "lsu"),
        ("resimulate", b'{"number": 1, "lambda": {"lsu": NaN}}', "lsu"),
        ("resimulate", b'{"number": 1, "lambda": {"lsu": Infinity}}', "lsu"),
        ("resimulate", b'{"number": 1, "latency": {"wait": 0}}', "wait"),
        ("resimulate", b'{"number": 1, "latency": {"wait": 1e9}}', "wait"),
        ("resimulate", json.dumps({"number": 1, "lambda": dict.fromkeys(map(str, range(100)), 1)}).encode(), "at most"),
    ],
)
def test_malformed_requests(server: Server, verb: str, body: bytes, says: str) -> None:
    status, told = post(server, verb, body)
    assert status == 400
    assert says in told["error"]


def test_a_request_in_pieces_must_be_there_in_time(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drywarp.report.serve.READ_SECONDS", 0.3)
    # What a single read may take is no limit here, and this side waits for minutes.
    monkeypatch.setattr(Handler, "timeout", 3600.0)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=600) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert connection.recv(1000)[:5] in (b"", b"HTTP/")


def tried(server: Server, text: bytes) -> bytes:
    """What comes back, if anything: who is turned away may find the connection gone before all is said."""
    try:
        return raw(server, text)
    except ConnectionError:
        return b""


def test_only_so_many_connections_at_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # None of them is given up for its silence meanwhile.
    monkeypatch.setattr("drywarp.report.serve.READ_SECONDS", 3600.0)
    monkeypatch.setattr(Handler, "timeout", 3600.0)
    open_ones = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(MOST_AT_ONCE)]
    try:
        # Once the server has taken all of them, there is no room; one that is turned away takes none.
        with no_hang():
            while b" 503 " not in tried(server, b""):
                time.sleep(0.01)
    finally:
        for connection in open_ones:
            connection.close()
    page = f"GET /{server.token}/ HTTP/1.0\r\nHost: {server.hosts[0]}\r\n\r\n".encode()
    with no_hang():
        while b" 200 " not in tried(server, page):
            time.sleep(0.01)


def test_a_port_that_is_taken_is_said(server: Server) -> None:
    with pytest.raises(UsageError, match=f"--port {server.server_port}: cannot listen on {server_module.HOST}"):
        open_server(server.server_port)
