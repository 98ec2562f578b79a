// SPDX-License-Identifier: BSD-2-Clause

// An HTTP server and its clients for callcheck-programs: goroutines, channels, timers, garbage, deep stacks. Ends when it is killed.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sort"
	"time"
)

type entry struct {
	Name  string
	Words []string
	Next  *entry
}

var word = regexp.MustCompile(`(\w+)-(\d+)`)

func deep(n int) int {
	var room [64]int
	if n == 0 {
		return room[3]
	}
	return deep(n-1) + room[n%64] + 1
}

func serve(w http.ResponseWriter, r *http.Request) {
	defer func() { recover() }()
	var list *entry
	for i := 0; i < 50; i++ {
		list = &entry{fmt.Sprintf("name-%d", i), word.FindStringSubmatch(fmt.Sprintf("x-%d", i)), list}
	}
	names := []string{}
	for e := list; e != nil; e = e.Next {
		names = append(names, e.Name)
	}
	sort.Slice(names, func(i, j int) bool { return names[i] < names[j] })
	z := gzip.NewWriter(w)
	json.NewEncoder(z).Encode(list)
	z.Close()
	done := make(chan int)
	go func() { done <- deep(400) }()
	<-done
	if r.URL.Path == "/panic" {
		var none *entry
		none.Name = ""
	}
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(serve))
	for i := 0; i < 4; i++ {
		go func() {
			for n := 0; ; n++ {
				path := "/"
				if n%50 == 0 {
					path = "/panic"
				}
				if r, err := http.Get(server.URL + path); err == nil {
					io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	callOut()
}
