# SPDX-License-Identifier: BSD-2-Clause
"""Servers of our own, each on a free port, and what puts load on them."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess

import lib
from lib import need


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_answers(port, what):
    """Until somebody listens there."""

    def answers():
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False

    lib.wait_until(answers, f"{what} answers")


# ---- redis ----


def redis_argv(port, *options):
    return [lib.tool("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", lib.TMP, *options]


def redis_load(port, n, *options):
    return [lib.tool("redis-benchmark"), "-p", str(port), "-n", str(n), "-q", *options]


@contextlib.contextmanager
def redis(options, load_options):
    """The process of one that is under load without end."""
    port = free_port()
    with lib.process(lib.start(redis_argv(port, *options), cwd=lib.TMP)) as p:
        wait_answers(port, "redis-server")
        with lib.process(lib.start(redis_load(port, 10**9, *load_options))):
            yield p


# ---- nginx ----


def nginx_argv(port):
    """And the file that will hold its process id."""
    root = lib.temp()
    os.mkdir(root)
    os.chmod(lib.TMP, 0o711)
    os.chmod(root, 0o755)
    with open(root + "/index.html", "w") as f:
        f.write("x" * 1000)
    with open(root + "/nginx.conf", "w") as f:
        f.write(
            f"daemon off; worker_processes 1; error_log {root}/error.log; pid {root}/pid; events {{}}\n"
            f"http {{ access_log off; client_body_temp_path {root}/b; proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;\n"
            f"uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ root {root}; }} }} }}\n"
        )
    return [lib.tool("nginx"), "-c", root + "/nginx.conf"], root + "/pid"


def nginx_load(port, seconds):
    return [lib.tool("wrk"), "-t", "1", "-c", "20", "-d", str(seconds), f"http://127.0.0.1:{port}/index.html"]


@contextlib.contextmanager
def nginx():
    """The process id of the worker of one that is under load."""
    port = free_port()
    argv, _ = nginx_argv(port)
    with lib.process(lib.start(argv, cwd=lib.TMP)) as p:
        # the first process listens already before it has a worker
        lib.wait_until(lambda: lib.children(p.pid), "nginx has a worker")
        wait_answers(port, "nginx")
        with lib.process(lib.start(nginx_load(port, 2 * lib.LONG))):
            yield lib.children(p.pid)[0]


# ---- PostgreSQL ----


def _not_root():
    """PostgreSQL refuses to be run by root."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise lib.Skip("no user but root")


def _pg_tool(name):
    """Debian has the server's programs in a folder of their version."""
    for version in sorted(os.listdir("/usr/lib/postgresql") if os.path.isdir("/usr/lib/postgresql") else [], reverse=True):
        path = f"/usr/lib/postgresql/{version}/bin/{name}"
        if os.access(path, os.X_OK):
            return path
    return lib.tool(name)


@contextlib.contextmanager
def postgres(clients):
    """The process ids of a cluster that has so many backends under load."""
    user, runuser, port = _not_root(), lib.tool("runuser"), free_port()
    os.chmod(lib.TMP, 0o711)
    root = lib.temp()
    os.mkdir(root)
    os.chown(root, user.pw_uid, user.pw_gid)
    drop = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    at = ["-h", root, "-p", str(port)]
    login = [*at, "-U", "bench", "postgres"]

    def run(name, *args):
        argv = [runuser, "-u", user.pw_name, "--", _pg_tool(name), *args]
        return subprocess.run(argv, capture_output=True, text=True, cwd=root, timeout=lib.LONG)

    def do(*argv):
        r = run(*argv)
        need(r.returncode == 0, f"{argv[0]}: {r.stderr[-300:]}")

    def backends(pid):
        names = []
        for c in lib.children(pid):
            with contextlib.suppress(OSError), open(f"/proc/{c}/cmdline") as f:
                names.append(f.read())
        return sum("bench postgres" in n for n in names)

    try:
        do("initdb", "-D", root + "/data", "-A", "trust", "-U", "bench", "--no-sync")
        argv = [_pg_tool("postgres"), "-D", root + "/data", "-k", root, "-p", str(port), "-c", "listen_addresses=", "-c", "shared_buffers=32MB"]
        with lib.process(lib.start(argv, cwd=root, **drop)) as p:
            lib.wait_until(lambda: run("pg_isready", "-q", *at).returncode == 0, "postgres is ready")
            do("pgbench", "-i", "-q", "-s", "2", *login)
            with lib.process(lib.start([_pg_tool("pgbench"), "-T", str(2 * lib.LONG), "-c", str(clients), "-j", "2", *login], **drop)):
                lib.wait_until(lambda: backends(p.pid) == clients, f"{clients} backends")
                yield [p.pid, *lib.children(p.pid)]
            p.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(10)
    finally:
        shutil.rmtree(root, ignore_errors=True)
