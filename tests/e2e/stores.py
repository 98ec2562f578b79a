# SPDX-License-Identifier: BSD-2-Clause
"""Stores of profiles that the tests make: they take what the agent delivers, say what they are told to say, and decode what they have
taken by the published numbers of the fields, without a line of the agent's."""

import collections
import contextlib
import gzip
import http.server
import os
import re
import select
import ssl
import subprocess
import threading
import time

import heap_truth
import lib
from heap_truth import fields, message, numbers

PUSH = "/push.v1.PusherService/Push"
WRITE_RAW = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
OTLP = "/v1development/profiles"

# url: with scheme and host where it is a proxy that is asked
Request = collections.namedtuple("Request", "path headers body at url")
# labels: of the series, or of the resource. types: (type, unit). stacks: {frames from the root: values}
Taken = collections.namedtuple("Taken", "labels types period_type begin_ns duration_ns stacks comments")


def grpc_web(status, said=""):
    """The answer of gRPC-Web: an empty message, then the trailer."""
    trailer = f"grpc-status: {status}\r\ngrpc-message: {said}\r\n".encode()
    return b"\0\0\0\0\0" + b"\x80" + len(trailer).to_bytes(4, "big") + trailer


def good(request):
    """What a store says that has taken it: (status, headers, body)."""
    if request.path == PUSH:
        return 200, {"Content-Type": "application/proto"}, b""
    if request.path == WRITE_RAW:
        return 200, {"Content-Type": "application/grpc-web+proto"}, grpc_web(0)
    if request.path == OTLP:
        return 200, {"Content-Type": "application/x-protobuf"}, b""
    return 204, {}, b""


CUT = "cut"  # as an answer: none
SLOW = "slow"  # one that comes byte by byte, one a second, until the other side has enough
HANG = "hang"  # none, until the store lets go: CUT then


class Store:
    """answer(request) says what comes back, CUT for nothing, SLOW for less and less, HANG for nothing until let_go is set; stored: what was
    then taken, in order. certificate: paths of it and its key. latency: seconds until the answer to what was taken. closes: the connection
    ends with each answer, which does not say so."""

    def __init__(self, answer=good, certificate=None, port=0, address="127.0.0.1"):
        self.answer, self.latency, self.closes = answer, 0, False
        self.let_go = threading.Event()
        self.stored, self.requests = [], []
        self.lock = threading.Lock()
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = lib.LONG

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path = re.sub("^http://[^/]+", "", self.path)
                request = Request(path, dict(self.headers), body, time.monotonic(), self.path)
                with store.lock:
                    store.requests.append(request)
                    answer = store.answer(request)
                    if answer not in (CUT, SLOW, HANG) and is_taken(request, answer):
                        store.stored.append(request)
                if answer in (CUT, SLOW, HANG):
                    self.close_connection = True
                if answer == HANG:
                    store.let_go.wait(lib.LONG)
                if answer in (CUT, HANG):
                    return
                if answer == SLOW:
                    # its status is not there before the other side has enough, and would be an answer
                    return self.trickle(b"HTTP/1.1 200 " + b"O" * 1000)
                status, headers, said = answer
                time.sleep(store.latency)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": len(said)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(said)
                self.close_connection |= store.closes

            def trickle(self, data):
                with contextlib.suppress(OSError):
                    for byte in data:
                        self.wfile.write(bytes([byte]))
                        if select.select([self.connection], [], [], 1)[0] and not self.connection.recv(1):
                            return

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            # a courier opens eight at once, and what does not fit is tried again a second later, or three
            request_queue_size = 128

            def handle_error(self, *args):
                pass  # it was cut

        self.server = Server((address, port), Handler)
        self.port = self.server.server_address[1]
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
            self.server.socket = self.context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https" if certificate else "http"
        threading.Thread(target=self.server.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()

    def url(self, path="", host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def taken(self):
        with self.lock:
            return [t for r in self.stored for t in decode(r)]


def is_taken(request, answer):
    status, _, said = answer
    if request.path == WRITE_RAW:
        return status == 200 and b"grpc-status: 0" in said
    return 200 <= status < 300


# ---- decoders ----


def decode(request):
    if request.path == PUSH:
        return decode_push(request.body)
    if request.path == WRITE_RAW:
        size = int.from_bytes(request.body[1:5], "big")
        lib.need(request.body[0] == 0 and size == len(request.body) - 5, f"a frame of {size} bytes in {len(request.body)}")
        return decode_write_raw(request.body[5:])
    if request.path.startswith("/v1development"):
        body = request.body
        return decode_otlp(gzip.decompress(body) if request.headers.get("Content-Encoding") == "gzip" else body)
    return [of_pprof({}, request.body)]


def of_pprof(labels, data):
    p = heap_truth.parse_pprof(data)
    stacks = collections.Counter()
    values = collections.defaultdict(lambda: [0] * len(p.types))
    for s in p.samples:
        stacks[tuple(s.frames)] += 1
        values[tuple(s.frames)] = [a + b for a, b in zip(values[tuple(s.frames)], s.values)]
    return Taken(labels, p.types, p.period_type, p.begin_ns, p.duration_ns, dict(values), p.comments)


def pairs(data, number):
    """Messages of name (1) and value (2)."""
    return {m.get(1, b"").decode(): m.get(2, b"").decode() for m in (message(v) for n, v in fields(data) if n == number)}


def decode_push(body):
    """Pyroscope's PushRequest."""
    taken = []
    for n, series in fields(body):
        lib.need(n == 1, f"field {n} in a PushRequest")
        for n, sample in fields(series):
            if n == 2:
                taken.append(of_pprof(pairs(series, 1), message(sample)[1]))
    return taken


def decode_write_raw(body):
    """Parca's WriteRawRequest."""
    taken = []
    for n, series in fields(body):
        lib.need(n == 2, f"field {n} in a WriteRawRequest")
        labels = next(v for n, v in fields(series) if n == 1)
        for n, sample in fields(series):
            if n == 2:
                taken.append(of_pprof(pairs(labels, 1), message(sample)[1]))
    return taken


def any_value(data):
    m = message(data)
    if 5 in m:
        return [any_value(v) for n, v in fields(m[5]) if n == 1]
    return m[1].decode() if 1 in m else m.get(3)


def decode_otlp(body, sample_fields=(1, 2, 4)):
    """ExportProfilesServiceRequest. sample_fields: numbers of stack, attributes and values in a sample: of version 1.10."""
    top = list(fields(body))
    dictionary = next(v for n, v in top if n == 2)
    table = lambda number: [v for n, v in fields(dictionary) if n == number]
    strings = [s.decode() for s in table(5)]
    lib.need(strings[0] == "" and len(set(strings)) == len(strings), "strings")
    for number in (1, 2, 3, 4, 6, 7):
        entries = table(number)
        none = entries and not any(any(v) if isinstance(v, bytes) else v for _, v in fields(entries[0]))
        lib.need(none, f"table {number} does not begin with none")
        twice = [e for e, n in collections.Counter(entries).items() if n > 1]
        lib.need(not twice, f"table {number} has something twice: {twice[:3]}")
    functions = [strings[message(f).get(1, 0)] for f in table(3)]
    mappings = [strings[message(m).get(4, 0)] for m in table(1)]
    stacks = [[i for n, v in fields(s) if n == 1 for i in numbers(v)] for s in table(7)]
    locations = []
    for b in table(2):
        m = message(b)
        names = [functions[message(v).get(1, 0)] for n, v in fields(b) if n == 3]
        locations.append(names[::-1] or [f"{os.path.basename(mappings[m.get(1, 0)])}+{m.get(2, 0):#x}"])
    attributes = [(strings[message(a).get(1, 0)], any_value(message(a).get(2, b""))) for a in table(6)]
    taken = []
    for _, resource in (x for x in top if x[0] == 1):
        labels = {}
        for n, v in fields(message(resource)[1]):
            labels[message(v)[1].decode()] = any_value(message(v)[2])
        for _, scope in (x for x in fields(resource) if x[0] == 2):
            for _, profile in (x for x in fields(scope) if x[0] == 2):
                taken.append(otlp_profile(profile, labels, strings, stacks, locations, attributes, sample_fields))
    return taken


def otlp_profile(data, labels, strings, stacks, locations, attributes, sample_fields):
    all_fields = list(fields(data))
    one = lambda number, default: next((v for n, v in all_fields if n == number), default)
    fixed = lambda v: int.from_bytes(v, "little") if isinstance(v, bytes) else v
    value_type = lambda b: (strings[message(b).get(1, 0)], strings[message(b).get(2, 0)])
    stack_field, attribute_field, value_field = sample_fields
    values = {}
    for _, sample in (x for x in all_fields if x[0] == 2):
        m = message(sample)
        value = [i for n, v in fields(sample) if n == value_field for i in numbers(v)]
        lib.need(len(value) == 1, f"values {value}")
        for i in [i for n, v in fields(sample) if n == attribute_field for i in numbers(v)]:
            lib.need(0 < i < len(attributes), f"attribute {i}")
        frames = tuple(f for i in reversed(stacks[m.get(stack_field, 0)]) for f in locations[i])
        values[frames] = [values.get(frames, [0])[0] + value[0]]
    lib.need(len(one(7, b"")) == 16, "profile_id")
    comments = [c for i in numbers(one(11, b"")) for c in attributes[i][1]] if one(11, b"") else []
    return Taken(labels, [value_type(one(1, b""))], value_type(one(5, b"")), fixed(one(3, 0)), one(4, 0), values, comments)


# ---- certificates ----


def certificate(name, authority=None):
    """A key and a certificate for 127.0.0.1 and localhost, of an authority, or one itself: paths of certificate and key."""
    cert, key = lib.temp(f".{name}.pem"), lib.temp(f".{name}.key")
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    argv += ["-subj", f"/CN={name}", "-keyout", key, "-out", cert, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    if authority:
        argv += ["-CA", authority[0], "-CAkey", authority[1], "-addext", "basicConstraints=critical,CA:FALSE"]
    r = subprocess.run(argv, capture_output=True, text=True)
    lib.need(r.returncode == 0, r.stderr)
    return cert, key
