/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Demangles names of C++ and Rust, in bounded time and space whatever the name is.
 *
 * A mangled name may refer back to its parts, so that some hundred bytes can describe a type of
 * gigabytes. The library prints it all, and where a parameter pack is expanded it searches it all
 * without printing. Hence two bounds: the output is cut off from within the callback, and the parts
 * of a C++ name, counted as often as they are referred to, are limited before it is printed.
 */
#include "target/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OUT 65536 /* bytes */
#define MAX_PARTS 16384
#define MAX_DEPTH 2048

struct out {
	char *buf;
	size_t sz, cap;
	jmp_buf too_much;
};

/* The library has no way to stop but this; its printers hold no memory that could leak. */
static void take(const char *s, size_t sz, void *opaque)
{
	struct out *o = opaque;

	if (!sz)
		return;
	if (sz >= MAX_OUT - o->sz)
		longjmp(o->too_much, 1);
	if (o->sz + sz >= o->cap) {
		size_t cap = (o->sz + sz) * 2 + 64;
		char *buf = realloc(o->buf, cap);

		if (!buf)
			longjmp(o->too_much, 1);
		o->buf = buf;
		o->cap = cap;
	}
	memcpy(o->buf + o->sz, s, sz);
	o->sz += sz;
	o->buf[o->sz] = '\0';
}

/* What a part of this kind keeps in its union: two other parts (either may be NULL), and nothing
 * that we do not know. */
static bool has_two_parts(enum demangle_component_type type)
{
	switch (type) {
	case DEMANGLE_COMPONENT_QUAL_NAME:
	case DEMANGLE_COMPONENT_LOCAL_NAME:
	case DEMANGLE_COMPONENT_TYPED_NAME:
	case DEMANGLE_COMPONENT_TEMPLATE:
	case DEMANGLE_COMPONENT_CONSTRUCTION_VTABLE:
	case DEMANGLE_COMPONENT_RESTRICT:
	case DEMANGLE_COMPONENT_VOLATILE:
	case DEMANGLE_COMPONENT_CONST:
	case DEMANGLE_COMPONENT_RESTRICT_THIS:
	case DEMANGLE_COMPONENT_VOLATILE_THIS:
	case DEMANGLE_COMPONENT_CONST_THIS:
	case DEMANGLE_COMPONENT_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE_THIS:
	case DEMANGLE_COMPONENT_VENDOR_TYPE_QUAL:
	case DEMANGLE_COMPONENT_POINTER:
	case DEMANGLE_COMPONENT_REFERENCE:
	case DEMANGLE_COMPONENT_RVALUE_REFERENCE:
	case DEMANGLE_COMPONENT_COMPLEX:
	case DEMANGLE_COMPONENT_IMAGINARY:
	case DEMANGLE_COMPONENT_FUNCTION_TYPE:
	case DEMANGLE_COMPONENT_ARRAY_TYPE:
	case DEMANGLE_COMPONENT_PTRMEM_TYPE:
	case DEMANGLE_COMPONENT_VECTOR_TYPE:
	case DEMANGLE_COMPONENT_ARGLIST:
	case DEMANGLE_COMPONENT_TEMPLATE_ARGLIST:
	case DEMANGLE_COMPONENT_INITIALIZER_LIST:
	case DEMANGLE_COMPONENT_CAST:
	case DEMANGLE_COMPONENT_CONVERSION:
	case DEMANGLE_COMPONENT_NULLARY:
	case DEMANGLE_COMPONENT_UNARY:
	case DEMANGLE_COMPONENT_BINARY:
	case DEMANGLE_COMPONENT_BINARY_ARGS:
	case DEMANGLE_COMPONENT_TRINARY:
	case DEMANGLE_COMPONENT_TRINARY_ARG1:
	case DEMANGLE_COMPONENT_TRINARY_ARG2:
	case DEMANGLE_COMPONENT_LITERAL:
	case DEMANGLE_COMPONENT_LITERAL_NEG:
	case DEMANGLE_COMPONENT_DECLTYPE:
	case DEMANGLE_COMPONENT_PACK_EXPANSION:
	case DEMANGLE_COMPONENT_CLONE:
	case DEMANGLE_COMPONENT_NOEXCEPT:
	case DEMANGLE_COMPONENT_THROW_SPEC:
		return true;
	default:
		return false;
	}
}

/* Takes the parts below c from *budget; false if there are too many, or too deep. */
static bool count_parts(const struct demangle_component *c, unsigned int *budget,
			unsigned int depth)
{
	for (; c; c = c->u.s_binary.right, depth++) {
		if (!*budget || depth > MAX_DEPTH)
			return false;
		--*budget;
		if (!has_two_parts(c->type))
			return true;
		if (!count_parts(c->u.s_binary.left, budget, depth + 1))
			return false;
	}
	return true;
}

static bool print_cxx(const char *name, int options, struct out *o)
{
	unsigned int budget = MAX_PARTS;
	struct demangle_component *c;
	void *volatile mem = NULL;
	volatile bool ok = false;
	void *parts;

	/* the library would refuse names of more than 1 KiB for fear of its stack: ours allows for
	 * DEMANGLE_MAX */
	options |= DMGL_NO_RECURSE_LIMIT;
	c = cplus_demangle_v3_components(name, options, &parts);
	if (!c)
		return false;
	mem = parts;
	if (count_parts(c, &budget, 0) && !setjmp(o->too_much))
		ok = cplus_demangle_print_callback(options, c, take, o);
	free(mem);
	return ok;
}

static bool print_rust(const char *name, int options, struct out *o)
{
	volatile bool ok = false;

	if (!setjmp(o->too_much))
		ok = rust_demangle_callback(name, options, take, o);
	return ok;
}

char *demangle(const char *name)
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	bool cxx = !strncmp(name, "_Z", 2), ok;
	struct out o = {};

	if ((!cxx && strncmp(name, "_R", 2)) || strnlen(name, DEMANGLE_MAX + 1) > DEMANGLE_MAX)
		return NULL;
	/* Rust's old scheme is C++'s with a hash at the end, and its reader accepts nothing else */
	ok = print_rust(name, options, &o);
	if (!ok && cxx) {
		o.sz = 0;
		ok = print_cxx(name, options, &o);
	}
	if (ok && o.sz)
		return o.buf;
	free(o.buf);
	return NULL;
}
