# SPDX-License-Identifier: BSD-2-Clause
"""Work of many kinds for callcheck-programs. Ends when it is killed."""

import hashlib
import json
import re
import signal
import threading
import time
import zlib

lock = threading.Lock()


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def work():
    data = [{"name": f"n{i}", "values": list(range(i % 20))} for i in range(200)]
    data.sort(key=lambda d: (len(d["values"]), d["name"]))
    text = json.dumps(data)
    with lock:
        json.loads(text)
        time.sleep(0.0005)
    re.sub(r"n(\d+)", lambda m: m.group(1) * 2, text)
    hashlib.sha256(zlib.compress(text.encode())).hexdigest()
    fibonacci(12)


def run():
    while True:
        work()


signal.signal(signal.SIGPROF, lambda *_: fibonacci(5))
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
run()
