// SPDX-License-Identifier: BSD-2-Clause
// An HTTP server and its clients for callcheck-programs. Ends when it is killed.
"use strict";
const http = require("http");
const zlib = require("zlib");

class Shape {
  constructor(n) { this.n = n; }
  area() { return this.n * 1.5; }
}
class Square extends Shape {
  area() { return this.n * this.n; }
}

function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

function work() {
  const list = [];
  for (let i = 0; i < 300; i++) list.push(i % 2 ? new Shape(i) : new Square(i));
  list.sort((a, b) => a.area() - b.area());
  const text = JSON.stringify(list.map((s) => ({ n: s.n, a: `${s.area()}`.replace(/(\d)(\d)/g, "$2$1") })));
  return zlib.deflateSync(text).length + JSON.parse(text).length + fibonacci(15);
}

const server = http.createServer((req, res) => res.end(String(work())));
server.listen(0, "127.0.0.1", () => {
  const again = () => http.get({ port: server.address().port, agent: false }, (res) => {
    res.resume();
    res.on("end", again);
  });
  for (let i = 0; i < 3; i++) again();
});
