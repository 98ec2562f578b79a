// SPDX-License-Identifier: BSD-2-Clause

// A program with known waits, as waits.h describes them: a goroutine that owns its thread waits for a mutex. It is the runtime
// that puts the thread to sleep, by a futex of its own, and the runtime's scheduler that ends it, somewhat later.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	mutex               sync.Mutex
	open, started, done int64
	tid                 int64
	from, until         int64
	since               = time.Now()
)

func now() int64 { return int64(time.Since(since)) }

// The runtime does not know that the thread sleeps, and takes nothing away from it; its signals do not shorten it.
func nap(us int64) {
	t := syscall.NsecToTimespec(us * 1000)
	for {
		at := uintptr(unsafe.Pointer(&t))
		if _, _, e := syscall.RawSyscall(syscall.SYS_NANOSLEEP, at, at, 0); e != syscall.EINTR {
			return
		}
	}
}

func own(name string) int64 {
	runtime.LockOSThread()
	text := append([]byte(name), 0)
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0)
	id, _, _ := syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
	return int64(id)
}

func file(thread int64, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/%s", thread, name))
	return string(text)
}

// Is a thread off its CPU, in futex or restart_syscall?
func asleep(thread int64) bool {
	text := file(thread, "syscall")
	return strings.HasPrefix(text, "202 ") || strings.HasPrefix(text, "219 ")
}

// How often it has gone to sleep.
func sleeps(thread int64) string {
	_, after, _ := strings.Cut(file(thread, "status"), "\nvoluntary_ctxt_switches:")
	return after
}

// Returns when the thread was asleep as it has been all the time since, for us or longer.
func hold_asleep(thread, us int64) int64 {
	for {
		before := sleeps(thread)
		if asleep(thread) {
			seen := now()
			nap(us)
			if asleep(thread) && sleeps(thread) == before {
				return seen
			}
		}
		nap(30)
	}
}

//go:noinline
func waiter_go() {
	mutex.Lock()
}

//go:noinline
func holder_go() {
	mutex.Unlock()
}

func wait(rounds int64) {
	atomic.StoreInt64(&tid, own("w go"))
	for r := int64(1); r <= rounds; r++ {
		for atomic.LoadInt64(&open) != r {
			nap(30)
		}
		atomic.StoreInt64(&from, now())
		atomic.StoreInt64(&started, r)
		waiter_go()
		atomic.StoreInt64(&until, now())
		mutex.Unlock()
		atomic.StoreInt64(&done, r)
	}
	for {
		nap(100000)
	}
}

func hold(rounds, us int64, end chan string) {
	var ns, low, high int64
	own("h go")
	for atomic.LoadInt64(&tid) == 0 {
		nap(30)
	}
	for r := int64(1); r <= rounds; r++ {
		mutex.Lock()
		atomic.StoreInt64(&open, r)
		for atomic.LoadInt64(&started) != r {
			nap(30)
		}
		seen := hold_asleep(atomic.LoadInt64(&tid), us)
		release := now()
		holder_go()
		for atomic.LoadInt64(&done) != r {
			nap(30)
		}
		ns, low, high = ns+release-from, low+release-seen, high+until-from
	}
	end <- fmt.Sprintf(`{"waits":[{"mode":"go","side":"waiter","frames":[],"thread":"w go","count":%d,"ns":%d,"low":%d,`+
		`"high":%d,"woken":""}]}`, rounds, ns, low, high)
}

func number(name string, otherwise int64) int64 {
	for _, a := range os.Args {
		if strings.HasPrefix(a, name+"=") {
			otherwise, _ = strconv.ParseInt(a[len(name)+1:], 10, 64)
		}
	}
	return otherwise
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	time.AfterFunc(time.Duration(seconds)*time.Second, func() { os.Exit(0) })
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(4)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	os.Stdout.WriteString("ready\n")
	<-told
	end, rounds := make(chan string), number("n", 40)
	go wait(rounds)
	go hold(rounds, number("hold", 2000), end)
	os.Stdout.WriteString(<-end + "\n")
	for {
		time.Sleep(time.Hour)
	}
}
