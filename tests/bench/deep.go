// SPDX-License-Identifier: BSD-2-Clause

// What deep.c does, in Go: spins at a given depth, below DEPTH calls of one of eight functions each, whose frames are as large.
package main

import (
	"fmt"
	"os"
	"strconv"
)

var sink int

// What is called at each depth; the deepest is 0.
var calls []func(int) int

//go:noinline
func spin(int) int {
	for {
		sink++
	}
}

//go:noinline
func level0(depth int) int {
	var local [1]int
	local[depth%1] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%1]
}

//go:noinline
func level1(depth int) int {
	var local [2]int
	local[depth%2] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%2]
}

//go:noinline
func level2(depth int) int {
	var local [4]int
	local[depth%4] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%4]
}

//go:noinline
func level3(depth int) int {
	var local [6]int
	local[depth%6] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%6]
}

//go:noinline
func level4(depth int) int {
	var local [8]int
	local[depth%8] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%8]
}

//go:noinline
func level5(depth int) int {
	var local [10]int
	local[depth%10] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%10]
}

//go:noinline
func level6(depth int) int {
	var local [12]int
	local[depth%12] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%12]
}

//go:noinline
func level7(depth int) int {
	var local [14]int
	local[depth%14] = depth
	return calls[depth-1](depth-1) + local[(depth+1)%14]
}

func main() {
	levels := []func(int) int{level0, level1, level2, level3, level4, level5, level6, level7}
	depth := 40
	if len(os.Args) > 1 {
		depth, _ = strconv.Atoi(os.Args[1])
	}
	calls = append(calls, spin)
	for i := 1; i <= depth; i++ {
		calls = append(calls, levels[i%len(levels)])
	}
	fmt.Println("ready")
	os.Exit(calls[depth](depth))
}
