# SPDX-License-Identifier: BSD-2-Clause
"""Parca and an OpenTelemetry Collector, built from Go modules at first, which takes some ten minutes of two CPUs, into OUT/stores."""

import base64
import collections
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import heap_truth
import lib
import stores
from lib import need
from servers import free_port

PARCA, COLLECTOR = "v0.28.0", "v0.159.0"
BUILT = os.path.join(os.path.abspath(os.environ.get("OUT", "build")), "stores")


def go(folder, *args):
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "on", "CGO_ENABLED": "0"}
    r = subprocess.run([shutil.which("go") or lib.tool("go"), *args], cwd=folder, env=env, capture_output=True, text=True)
    need(r.returncode == 0, f"go {' '.join(args)}: {r.stderr[-2000:]}")


def module(name, requires, files):
    """A folder with a program of modules, at these versions."""
    folder = os.path.join(BUILT, name)
    os.makedirs(folder, exist_ok=True)
    lines = "".join(f"require {m} {v}\n" for m, v in requires)
    for file, text in {"go.mod": f"module {name}\n\ngo 1.25.0\n\n{lines}", **files}.items():
        with open(os.path.join(folder, file), "w") as f:
            f.write(text)
    return folder


def parca():
    path = os.path.join(BUILT, "parca", f"parca-{PARCA}")
    if not os.path.exists(path):
        folder = module("parca", [("github.com/parca-dev/parca", PARCA)], {"tools.go": 'package tools\n\nimport _ "github.com/parca-dev/parca/pkg/parca"\n'})
        go(folder, "build", "-o", path, "github.com/parca-dev/parca/cmd/parca")
    return path


# what the Collector's builder makes of a receiver and an exporter
COLLECTOR_MAIN = """package main

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"log"
)

func factories() (otelcol.Factories, error) {
	var f otelcol.Factories
	var err error
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	f.Telemetry = otelconftelemetry.NewFactory()
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](otlphttpexporter.NewFactory())
	return f, err
}

func main() {
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol", Version: "test"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			DefaultScheme:     "file",
		}},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}
"""


def collector():
    path = os.path.join(BUILT, "collector", f"otelcol-{COLLECTOR}")
    if not os.path.exists(path):
        parts = ("otelcol", "exporter/otlphttpexporter", "receiver/otlpreceiver", "service")
        folder = module("collector", [(f"go.opentelemetry.io/collector/{p}", COLLECTOR) for p in parts], {"main.go": COLLECTOR_MAIN})
        go(folder, "build", "-o", path, ".")
    return path


class Server:
    """A store at work on a port of loopback, which may be ended and started again."""

    def __init__(self, argv, port):
        self.argv, self.port, self.log = argv, port, lib.temp(".log")

    def start(self):
        with open(self.log, "ab") as log:
            self.p = lib.start(self.argv, stdout=log, stderr=log)
        lib.wait_until(lambda: self.answers() or self.p.poll() is not None, f"{self.argv[0]} to listen")
        need(self.p.poll() is None, f"{self.argv}: {self.said()}")

    def answers(self):
        with contextlib.suppress(OSError):
            with contextlib.closing(socket.create_connection(("127.0.0.1", self.port), 1)):
                return True
        return False

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-2000:]

    def stop(self):
        """As a service is stopped: it may write what it has."""
        self.p.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.p.wait(30)
        lib.stop(self.p)

    def url(self, path=""):
        return f"http://127.0.0.1:{self.port}{path}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *args):
        lib.stop(self.p)


def start_parca(**settings):
    port, config = free_port(), lib.temp(".yaml")
    with open(config, "w") as f:
        json.dump({"object_storage": {"bucket": {"type": "FILESYSTEM", "config": {"directory": lib.temp()}}}, **settings}, f)
    data = lib.temp()
    return Server([parca(), f"--config-path={config}", f"--http-address=127.0.0.1:{port}", f"--storage-path={data}", "--enable-persistence", "--debuginfod-upstream-servers="], port)


def start_collector(to):
    port, config = free_port(), lib.temp(".yaml")
    with open(config, "w") as f:
        json.dump(
            {
                "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
                "exporters": {"otlphttp": {"profiles_endpoint": to.url(stores.OTLP), "retry_on_failure": {"enabled": True}}},
                "service": {
                    "pipelines": {"profiles": {"receivers": ["otlp"], "exporters": ["otlphttp"]}},
                    "telemetry": {"metrics": {"level": "none"}},
                },
            },
            f,
        )
    return Server([collector(), f"--config=file:{config}", "--feature-gates=service.profilesSupport"], port)


def cpu_time_of(service):
    return f'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{{service_name="{service}"}}'


def ask(store, selector=cpu_time_of("busy")):
    """What Parca has of it, all together: {frames: value}, and the types of values."""
    hour = 3600
    stamp = lambda t: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))
    query = {
        "mode": "MODE_MERGE",
        "reportType": "REPORT_TYPE_PPROF",
        "merge.query": selector,
        "merge.start": stamp(time.time() - hour),
        "merge.end": stamp(time.time() + hour),
    }
    try:
        with urllib.request.urlopen(store.url("/api/profiles/query?" + urllib.parse.urlencode(query)), timeout=30) as r:
            p = heap_truth.parse_pprof(base64.b64decode(json.load(r)["pprof"]))
    except urllib.error.HTTPError:
        return collections.Counter(), None
    total = collections.Counter()
    for s in p.samples:
        total[tuple(s.frames)] += s.values[0]
    return total, p.types
