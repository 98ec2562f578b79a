// SPDX-License-Identifier: BSD-2-Clause

// Functions of which is known how often they are called, on stacks that have to grow for them: `go_calls COUNT` calls large() so
// often, each time in a new goroutine, and small() ten times as often, which calls itself. Prints how often, as JSON.
package main

import (
	"fmt"
	"os"
	"strconv"
)

//go:noinline
func large(n int) int {
	var frame [6000]byte

	for i := range frame {
		frame[i] = byte(n + i)
	}
	return int(frame[n%len(frame)])
}

//go:noinline
func small(n int) int {
	if n <= 1 {
		return 1
	}
	return small(n-1) + n
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	sums := make(chan int)
	for i := 0; i < count; i++ {
		go func(i int) { sums <- large(i) + small(10) }(i)
		<-sums
	}
	fmt.Printf("{\"large\":%d,\"small\":%d}\n", count, 10*count)
}
