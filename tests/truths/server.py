"""A server that misbehaves on order, and the small data set that it serves."""

import hashlib
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from extremal.files.datasets import DataSet

# 6000 rows, labels 1 and 2, column 3 of 3 always empty: more than a few pieces of a download
LINES = [f"{1 + i % 3 // 2} 1:{i % 7 + 1} 2:0.5" for i in range(6000)]
BODY = "\n".join(LINES).encode()
TINY = DataSet(
    "tiny", n=6000, d=3, labels=(1.0, 2.0), positives=2000, nonzeros=12000, total=float(sum(i % 7 + 1.5 for i in range(6000))),
    sha256=hashlib.sha256(BODY).hexdigest(), note="for tests",
)  # fmt: skip


def names(folder):
    """What is in a folder that may not be there."""
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


class Server(ThreadingHTTPServer):
    """Answers the k-th request by the k-th of its behaviours, the last one again and again; notes what was asked and sent."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.behaviours, self.body, self.ranges, self.sent = [good], BODY, [], []
        self.turn, self.lock = itertools.count(), threading.Lock()
        self.released = threading.Event()

    def expects(self, *behaviours):
        self.behaviours = list(behaviours)
        return self

    def handle_error(self, request, client_address):  # a client that has gone
        pass


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        with self.server.lock:
            k = next(self.server.turn)
            self.server.ranges.append(self.headers["Range"])
            self.server.sent.append(0)
        self.k = k
        self.server.behaviours[min(k, len(self.server.behaviours) - 1)](self)

    def start(self):
        """The first byte that was asked for."""
        asked = self.headers["Range"]
        return int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0

    def head(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def ranged(self):
        """The head of an honest answer; returns what its body should be."""
        start, body = self.start(), self.server.body
        rest = body[start:]
        if start:
            self.head(206, Content_Length=len(rest), Content_Range=f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.head(200, Content_Length=len(rest))
        return rest

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()
        self.server.sent[self.k] += len(data)

    def log_message(self, *_):
        pass


# ---- its behaviours


def good(handler):
    handler.send(handler.ranged())


def ignores_range(handler):
    handler.head(200, Content_Length=len(handler.server.body))
    handler.send(handler.server.body)


def other_range(handler):
    body = handler.server.body
    handler.head(206, Content_Length=len(body), Content_Range=f"bytes 0-{len(body) - 1}/{len(body)}")
    handler.send(body)


def no_length(handler):
    handler.head(200)
    handler.send(handler.server.body)


def status(code):
    return lambda handler: handler.head(code, Content_Length=0)


def cut(size):
    """Promises all and closes the connection after some bytes."""
    return lambda handler: handler.send(handler.ranged()[:size])


def cut_without_length(size):
    def answer(handler):
        handler.head(200)
        handler.send(handler.server.body[:size])

    return answer


def stall(size):
    """Promises all and falls silent after some bytes."""

    def answer(handler):
        handler.send(handler.ranged()[:size])
        handler.server.released.wait(20)

    return answer
