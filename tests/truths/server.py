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
    """Answers the k-th request by the k-th of its behaviours, the last one again and again; notes what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.behaviours, self.body, self.asked = [good], BODY, []
        self.turn, self.released = itertools.count(), threading.Event()

    def expects(self, *behaviours):
        self.behaviours = list(behaviours)
        return self

    def handle_error(self, request, client_address):  # a client that has gone
        pass


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        self.server.asked.append(self.path)
        k = next(self.server.turn)
        self.server.behaviours[min(k, len(self.server.behaviours) - 1)](self)

    def head(self, code, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def send(self, data):
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, *_):
        pass


# ---- its behaviours


def cut(size, silent=False, length=True):
    """Sends some bytes only: it promises all if it names a length, and closes the connection or falls silent after them."""

    def answer(handler):
        handler.head(200, **({"Content_Length": len(handler.server.body)} if length else {}))
        handler.send(handler.server.body[:size])
        if silent:
            handler.server.released.wait(20)

    return answer


good, no_length = cut(None), cut(None, length=False)


def status(code):
    return lambda handler: handler.head(code, Content_Length=0)
