// SPDX-License-Identifier: BSD-2-Clause

// Goroutines whose stacks grow, and go through the functions of the runtime that switch stacks: a collection, channels and
// timers, which park goroutines; preemption; the runtime's own walk of a stack, on the thread's.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

var sink [4]int

//go:noinline
func leaf(n int) int {
	for i := 0; i < 20000; i++ {
		n = n*31 + i
	}
	return n
}

// 200 bytes of frame: a new goroutine's stack grows several times on the way down.
//
//go:noinline
func deep(n int) int {
	var room [25]int
	if n == 0 {
		return leaf(1)
	}
	room[n%25] = deep(n - 1)
	return room[n%25] + n
}

//go:noinline
func grow() {
	for {
		done := make(chan int)
		go func() { done <- deep(300) }()
		sink[0] += <-done
	}
}

//go:noinline
func callers() {
	var pcs [64]uintptr
	for {
		for i := 0; i < 1000; i++ {
			sink[1] += runtime.Callers(0, pcs[:])
		}
		time.Sleep(time.Microsecond)
	}
}

//go:noinline
func allocate() {
	var kept [256][]byte
	for i := 0; ; i++ {
		kept[i%256] = make([]byte, 4096+i%4096)
	}
}

//go:noinline
func pingPong(from, to chan int) {
	for n := range from {
		to <- n + 1
	}
}

//go:noinline
func lock(m *sync.Mutex) {
	for {
		m.Lock()
		sink[2] = leaf(sink[2])
		m.Unlock()
	}
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	var m sync.Mutex

	debug.SetGCPercent(20)
	a, b := make(chan int), make(chan int)
	go grow()
	go callers()
	go allocate()
	go pingPong(a, b)
	go pingPong(b, a)
	go lock(&m)
	go lock(&m)
	a <- 1
	fmt.Println("ready")
	time.Sleep(time.Duration(seconds) * time.Second)
}
