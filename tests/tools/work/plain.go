// SPDX-License-Identifier: BSD-2-Clause

//go:build !cgo

package main

func callOut() { select {} }
