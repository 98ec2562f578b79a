// SPDX-License-Identifier: BSD-2-Clause

//go:build cgo

package main

/*
#include <stdlib.h>
extern int compareInGo(void *, void *);
static int compare(const void *a, const void *b) { return compareInGo((void *)a, (void *)b); }
static int work(int n)
{
	int *v = malloc(n * sizeof(*v)), sum;

	for (int i = 0; i < n; i++)
		v[i] = rand();
	qsort(v, n, sizeof(*v), compare);
	sum = v[n / 2];
	free(v);
	return sum;
}
*/
import "C"
import "unsafe"

//export compareInGo
func compareInGo(a, b unsafe.Pointer) C.int {
	x, y := *(*C.int)(a), *(*C.int)(b)
	if x < y {
		return -1
	}
	if x > y {
		return 1
	}
	return 0
}

//export serveInGo
func serveInGo() { main() }

func callOut() {
	for {
		C.work(300)
	}
}
