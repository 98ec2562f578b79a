// SPDX-License-Identifier: BSD-2-Clause

// Go that calls C that calls Go, as a program, and as a library of a program in C (go_shared.c).
package main

/*
#include <stdlib.h>

void goCallback(void);

static volatile unsigned long cgo_sum;

__attribute__((noinline)) static void c_leaf(void)
{
	for (unsigned int i = 0; i < 300000; i++)
		cgo_sum += i;
}

__attribute__((noinline)) static void c_between(void)
{
	goCallback();
	cgo_sum++;
}
*/
import "C"

import (
	"fmt"
	"runtime"
)

var sink int

//go:noinline
func leaf() {
	for i := 0; i < 300000; i++ {
		sink = sink*31 + i
	}
}

//export goCallback
func goCallback() {
	var pcs [64]uintptr

	leaf()
	for i := 0; i < 100; i++ {
		sink += runtime.Callers(0, pcs[:])
	}
	C.c_leaf()
}

//go:noinline
func callC() { C.c_leaf() }

//go:noinline
func callBack() { C.c_between() }

//export goRun
func goRun() {
	for {
		callC()
		callBack()
	}
}

func main() {
	fmt.Println("ready")
	goRun()
}
