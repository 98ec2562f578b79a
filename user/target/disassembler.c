// SPDX-License-Identifier: BSD-2-Clause
#include "target/disassembler.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

#define TEXT(x) #x
#define NUMBER(x) TEXT(x)
/* of the headers that it was built with */
#define LIBRARY "libcapstone.so." NUMBER(CS_API_MAJOR)

static struct {
	typeof(cs_open) *open;
	typeof(cs_option) *option;
	typeof(cs_malloc) *malloc;
	typeof(cs_free) *free;
	typeof(cs_close) *close;
	typeof(cs_disasm_iter) *decode;
	typeof(cs_insn_group) *in_group;
	typeof(cs_regs_access) *regs;
} lib;

int disassembler_load(void)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "cs_open", &lib.open },	    { "cs_option", &lib.option },
		{ "cs_malloc", &lib.malloc },	    { "cs_free", &lib.free },
		{ "cs_close", &lib.close },	    { "cs_disasm_iter", &lib.decode },
		{ "cs_insn_group", &lib.in_group }, { "cs_regs_access", &lib.regs },
	};
	void *handle, *function;

	if (lib.open)
		return 0;
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		function = handle ? dlsym(handle, functions[i].name) : NULL;
		if (!function) {
			lib.open = NULL;
			return -ENOENT;
		}
		memcpy(functions[i].to, &function, sizeof(function));
	}
	return 0;
}

int disassembler__open(struct disassembler *ret)
{
	int err = disassembler_load();

	*ret = (struct disassembler){ 0 };
	if (err)
		return err;
	if (lib.open(CS_ARCH_X86, CS_MODE_64, &ret->handle) != CS_ERR_OK)
		return -ENOMEM;
	if (lib.option(ret->handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK)
		ret->insn = lib.malloc(ret->handle);
	if (ret->insn)
		return 0;
	disassembler__close(ret);
	return -ENOMEM;
}

void disassembler__close(struct disassembler *d)
{
	if (d->insn)
		lib.free(d->insn, 1);
	if (d->handle)
		lib.close(&d->handle);
	*d = (struct disassembler){ 0 };
}

bool disassembler__decode(const struct disassembler *d, const uint8_t **code, size_t *sz,
			  uint64_t *addr)
{
	return lib.decode(d->handle, code, sz, addr, d->insn);
}

bool disassembler__in_group(const struct disassembler *d, unsigned int group)
{
	return lib.in_group(d->handle, d->insn, group);
}

int disassembler__regs(const struct disassembler *d, cs_regs read, uint8_t *read_cnt,
		       cs_regs written, uint8_t *written_cnt)
{
	return lib.regs(d->handle, d->insn, read, read_cnt, written, written_cnt) == CS_ERR_OK ?
		       0 :
		       -EOPNOTSUPP;
}
