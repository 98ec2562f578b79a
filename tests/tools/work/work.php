<?php
// SPDX-License-Identifier: BSD-2-Clause
// Work of many kinds for callcheck-programs. Ends when it is killed.
function fibonacci($n) { return $n < 2 ? $n : fibonacci($n - 1) + fibonacci($n - 2); }

while (true) {
    $list = [];
    for ($i = 0; $i < 200; $i++) $list[] = ["name" => "n$i", "key" => md5((string) $i)];
    usort($list, fn ($a, $b) => strcmp($a["key"], $b["key"]));
    $text = json_encode($list);
    json_decode($text, true);
    preg_replace_callback('/n(\d+)/', fn ($m) => $m[1] . "x", $text);
    array_map(fn ($x) => strtoupper($x["name"]), $list);
    fibonacci(12);
    usleep(300);
}
