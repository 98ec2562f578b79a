// SPDX-License-Identifier: BSD-2-Clause

// A program that knows its own stacks: it spins at the ends of chains of calls of every kind that Go has, and tells what its runtime
// says of each.
//
//	go_frames                        prints "ready", of each chain a line "CHAIN<tab>FUNCTION|FILE|LINE<tab>..." (innermost first),
//	                                 "end"; then it goes round all chains for ever
//	go_frames profile FILE ROUNDS    goes round so often and leaves the runtime's own profile of that
//	go_frames table ENTRY FROM TO N  what the runtime says of every Nth address of its code; addresses are those of the file, in
//	                                 hexadecimal, ENTRY is main.entry's. The first line is the release: up to 1.22 only the innermost
//	                                 frame is told. Then lines "ADDRESS<tab>FUNCTION|FILE|LINE<tab>..."
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
)

// steps of one visit of a chain, some tenths of a millisecond; 0: tell
const long = 300000

var (
	sink  uint64
	chain string
	out   = bufio.NewWriter(os.Stdout)
)

func step(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

//go:noinline
func spin(n int) {
	if n == 0 {
		tell()
		return
	}
	x := sink
	for i := 0; i < n; i++ {
		x = step(x)
	}
	sink = x
}

func show(frames *runtime.Frames) {
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.PC != 0 {
			fmt.Fprintf(out, "\t%s|%s|%d", f.Function, f.File, f.Line)
		}
	}
	fmt.Fprintln(out)
}

func tell() {
	pcs := make([]uintptr, 100)
	out.WriteString(chain)
	show(runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)]))
}

// ---- chains ----

//go:noinline
func plain(n int) { plainer(n); sink++ }

//go:noinline
func plainer(n int) { spin(n); sink++ }

func inlinedInner(n int)  { spin(n); sink++ }
func inlinedMiddle(n int) { inlinedInner(n); sink += 2 }

//go:noinline
func inlined(n int) { inlinedMiddle(n); sink += 3 }

//go:noinline
func generic[V any](v V, n int) V { spin(n); return v }

type box[V any] struct{ v V }

//go:noinline
func (b *box[V]) open(n int) V { spin(n); return b.v }

func generics(n int) {
	generic(1, n)
	generic("", n)
	(&box[float64]{}).open(n)
}

type value struct{ a, b, c int }
type pointer struct{ value }
type worker interface{ work(n int) }

//go:noinline
func (v value) work(n int) { spin(n); sink += uint64(v.a) }

//go:noinline
func (p *pointer) own(n int) { spin(n); sink += uint64(p.b) }

//go:noinline
func through(w worker, n int) { w.work(n); sink++ }

//go:noinline
func call(f func(int), n int) { f(n); sink++ }

func closures(n int) {
	a := n
	call(func(n int) {
		call(func(m int) { spin(m); sink += uint64(a) }, n)
	}, n)
}

//go:noinline
func deferred(n int) {
	// in a loop: those that are not, are calls at the function's end
	for i := 0; i < 2; i++ {
		defer spin(n)
	}
}

//go:noinline
func panics(n int) {
	defer func() {
		recover()
		spin(n)
	}()
	panic(n)
}

//go:noinline
func recurse(depth, n int) {
	if depth > 0 {
		recurse(depth-1, n)
	} else {
		spin(n)
	}
	sink++
}

//go:noinline
func ofLibrary(n int) {
	strings.Map(func(r rune) rune { spin(n); return r }, "a")
}

func goroutine(n int) {
	var w sync.WaitGroup
	w.Add(1)
	go started(n, &w)
	w.Wait()
}

func started(n int, w *sync.WaitGroup) {
	plain(n)
	w.Done()
}

var chains = []struct {
	name string
	run  func(n int)
}{
	{"plain", plain},
	{"inlined", inlined},
	{"generics", generics},
	{"value", func(n int) { value{}.work(n) }},
	{"pointer", func(n int) { (&pointer{}).own(n) }},
	{"wrapper of a value's method", func(n int) { through(&value{}, n) }},
	{"wrapper of an embedded method", func(n int) { through(&pointer{}, n) }},
	{"method value", func(n int) { p := &pointer{}; call(p.own, n) }},
	{"method expression", func(n int) { f := (*pointer).own; f(&pointer{}, n) }},
	{"closures", closures},
	{"deferred", deferred},
	{"panics", panics},
	{"recursion", func(n int) { recurse(7, n) }},
	{"library", ofLibrary},
	{"reflection", func(n int) { reflect.ValueOf(plain).Call([]reflect.Value{reflect.ValueOf(n)}) }},
	{"goroutine", goroutine},
}

func goRound(rounds int) {
	for i := 0; i != rounds; i++ {
		n := long
		if rounds < 0 && i == 0 {
			fmt.Fprintln(out, "ready")
			n = 0
		}
		for _, c := range chains {
			chain = c.name
			c.run(n)
		}
		if n == 0 {
			fmt.Fprintln(out, "end")
			out.Flush()
		}
	}
}

// ---- other uses ----

func number(s string, base int) int {
	n, err := strconv.ParseInt(s, base, 64)
	if err != nil {
		panic(err)
	}
	return int(n)
}

func profile(path string, rounds int) {
	f, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	// twice as often as StartCPUProfile asks for, which finds that out, says so, and goes on
	runtime.SetCPUProfileRate(200)
	if err := pprof.StartCPUProfile(f); err != nil {
		panic(err)
	}
	goRound(rounds)
	pprof.StopCPUProfile()
	f.Close()
}

func table(at, from, to, every int) {
	defer out.Flush()
	shift := int(reflect.ValueOf(entry).Pointer()) - at
	fmt.Fprintln(out, runtime.Version())
	for pc := from; pc < to; pc += every {
		fmt.Fprintf(out, "%x", pc)
		// behind the one that is asked for, one that is nothing: the last of a list is not taken apart
		show(runtime.CallersFrames([]uintptr{uintptr(pc+shift) + 1, 1}))
	}
}

//go:noinline
func entry() { sink++ }

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "profile":
		profile(os.Args[2], number(os.Args[3], 10))
	case len(os.Args) == 6 && os.Args[1] == "table":
		table(number(os.Args[2], 16), number(os.Args[3], 16), number(os.Args[4], 16), number(os.Args[5], 10))
	default:
		goRound(-1)
	}
}
