# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of faults share: all that tests/e2e/lib.py has, and programs that are built here."""

import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))


def build(source, *flags):
    """A program, or with -shared a library, of this folder. Returns its path."""
    out = os.path.join(lib.TMP, source.removesuffix(".c"))
    if not os.path.exists(out):
        argv = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fno-builtin", "-fomit-frame-pointer", "-Wall", "-Wextra"]
        argv += ["-I" + os.path.join(lib.ROOT, "tests/progs"), "-o", out, os.path.join(HERE, source), "-pthread"]
        subprocess.run([*argv, *flags], check=True)
    return out


def copy(prog, name):
    """Of a test program, under another name, by which its process is called: others may run the program, too. In a folder of its own:
    one that is being killed may still be there, and cannot be written."""
    folder = lib.temp()
    os.mkdir(folder)
    return shutil.copy(lib.prog_path(prog), os.path.join(folder, name))


# how the processes of start_churn are called: other scripts run the program, too, at the same time
CHURN = f"churn-{os.getpid()}"


def start_churn(mode, rate, cnt, **kw):
    path = os.path.join(lib.TMP, CHURN)
    if not os.path.exists(path):
        shutil.copy(build("churn.c"), path)
    return lib.start_ready([path, "120", mode, str(rate), str(cnt)], **kw)


def go(p):
    """Lets a program of this folder do its round; returns what it says when that is done."""
    os.kill(p.pid, signal.SIGUSR1)
    return p.stdout.readline().decode().strip()


def halt(pid):
    """Stops a process: not one instruction of it from then on."""
    os.kill(pid, signal.SIGSTOP)
    lib.wait_until(lambda: state(pid) == "T", f"{pid} is stopped")


def account(stats, kind):
    """Of a kind, after a look at the identity."""
    k = stats["kinds"][kind]
    lib.need(k["seen"] == k["recorded"] + sum(k["lost"].values()), f"{kind}: seen is not recorded + lost: {k}")
    ends = k["stacks"]["complete"] + sum(k["stacks"]["truncated"].values())
    lib.need(k["recorded"] == ends, f"{kind}: {ends} stacks of {k['recorded']} samples: {k}")
    return k


def state(pid):
    """Of a process, or a thread: a letter, proc(5). None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


def name(pid):
    """Of a process; None: it is gone."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return None


def runs(pid, exe):
    """Does the process run this program? By its file: in a mount namespace of its own it may have another path."""
    try:
        return os.path.samefile(f"/proc/{pid}/exe", exe)
    except OSError:
        return False


def running(pid, exe):
    """The process that runs a program, among one and its descendants."""
    if runs(pid, exe):
        return pid
    return next((found for child in lib.children(pid) if (found := running(child, exe))), None)


def run(prefix, *args, exe=None, until=None, **kw):
    """bpfprof, behind words that start it, to its end, or to when until(p) returns: see lib.bpfprof. p: what the words have started."""
    exe = exe or lib.BPFPROF
    kw = {"cwd": lib.TMP, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace", **kw}
    start = lambda argv, fds: lib.start([*prefix, exe, *map(str, argv[1:])], pass_fds=fds, **kw)
    with lib.process(lib._with_ready(args, start) if until else start([exe, *args], [])) as p:
        if until:
            until(p)
            os.kill(running(p.pid, exe), signal.SIGINT)
        try:
            out, err = p.communicate(timeout=lib.LONG)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{args}: still running after {lib.LONG} s") from None
    return subprocess.CompletedProcess(p.args, p.returncode, out, err)


def at_once(function, *cases):
    """Calls the function with each of the cases, at the same time, since runs mostly wait; all of them to their end."""
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        for done in [pool.submit(function, *case) for case in cases]:
            done.result()
