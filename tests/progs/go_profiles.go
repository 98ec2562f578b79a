// SPDX-License-Identifier: BSD-2-Clause
// Writes a profile of itself by runtime/pprof: go_profiles FILE KIND.
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

var sink [][]byte

//go:noinline
func held() { sink = append(sink, make([]byte, 1<<20)) }

//go:noinline
func spin(until time.Time) (n int) {
	for time.Now().Before(until) {
		n++
	}
	return n
}

func main() {
	runtime.MemProfileRate = 1
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if os.Args[2] == "cpu" {
		pprof.StartCPUProfile(f)
		spin(time.Now().Add(300 * time.Millisecond))
		pprof.StopCPUProfile()
		return
	}
	for i := 0; i < 8; i++ {
		held()
	}
	runtime.GC()
	pprof.Lookup(os.Args[2]).WriteTo(f, 0)
}
