/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame instructions and the pointers and expressions among them: turns one function's
 * instructions into rows. ehframe.c finds the functions, unwind_table.c takes the rows.
 */
#ifndef TARGET_CFI_H
#define TARGET_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct unwind_packer;

/* Bytes to read. Reading past the end yields 0 and sets bad, which stays; nothing is read after
 * that. */
struct cfi_reader {
	const uint8_t *p, *end;
	bool bad;
};

/* A section of call frame information in memory. */
struct cfi_section {
	uint8_t *data;
	size_t sz;
	uint64_t vaddr;	    /* of its first byte, for DW_EH_PE_pcrel */
	uint64_t data_base; /* for DW_EH_PE_datarel, 0: unknown */
	bool eh;	    /* .eh_frame, else .debug_frame */
	bool terminated;    /* an entry of length 0 ends it; else its size does */
	bool follow_r12;    /* its rules say where r12 is */
};

/* What the instructions of an entry have established so far, as far as we follow it: the CFA, rbp,
 * rbx, r12, the return address. */
struct cfi_state {
	uint8_t cfa;	 /* enum bpfprof_cfa; _UNSUPPORTED: an expression; CFI_UNSUPPORTED: not a
			    register and offset we can hold */
	uint8_t reg;	 /* of the CFA */
	uint8_t fp;	 /* enum bpfprof_fp, or CFI_UNSUPPORTED */
	uint8_t ra;	 /* enum bpfprof_ra, or CFI_UNSUPPORTED, CFI_RA_SIGNAL */
	int32_t cfa_off; /* from reg, or CFI_NO_OFFSET; kept while an expression is in force */
	int32_t exp_off; /* of an expression */
	int16_t exp_aux;
	uint8_t exp_reg;
	int32_t fp_off;
	int16_t ra_aux;
	int16_t bx_off; /* as in struct bpfprof_rule */
	uint8_t r12;	/* as the rule's reg */
};
#define CFI_UNSUPPORTED 0xff
#define CFI_RA_SIGNAL 0xfe /* where the kernel's signal frame has it */
#define CFI_NO_OFFSET INT32_MIN

struct cfi_cie {
	size_t pos; /* in its section */
	const struct cfi_section *section;
	uint32_t code_align;
	int32_t data_align;
	uint8_t fde_enc; /* DW_EH_PE_… of an FDE's addresses */
	bool has_size;	 /* augmentation 'z': FDEs carry augmentation data, with its length */
	bool signal;	 /* augmentation 'S' */
	bool usable;
	struct cfi_state initial;
};

/*
 * Reads a pointer. Returns 0; -EBADMSG with in->bad set if it does not fit; -ENOTSUP for an
 * encoding that cannot be resolved in a file (indirect, relative to a text or function base).
 */
int cfi__read_pointer(const struct cfi_section *section, struct cfi_reader *in, uint8_t enc,
		      uint64_t *ret);

/* Runs the initial instructions of a CIE whose other fields are set; fills ->initial. 0 or
 * -EBADMSG. */
int cfi__run_cie(struct cfi_cie *cie, struct cfi_reader in);

/*
 * Runs the instructions of an FDE that holds from start up to end (exclusive), and gives its rows
 * to out. Where they cannot be followed, the rows up to there are good and one UNSUPPORTED row says
 * so.
 */
void cfi__run_fde(const struct cfi_cie *cie, struct cfi_reader in, uint64_t start, uint64_t end,
		  struct unwind_packer *out);

/* n bytes, which the caller reads from the pointer returned; NULL if there are not as many. */
static inline const uint8_t *cfi_reader__take(struct cfi_reader *in, uint64_t n)
{
	const uint8_t *p = in->p;

	if (n > (uint64_t)(in->end - in->p)) {
		in->bad = true;
		in->p = in->end;
		return NULL;
	}
	in->p += n;
	return p;
}

static inline uint8_t cfi_reader__u8(struct cfi_reader *in)
{
	const uint8_t *p = cfi_reader__take(in, 1);

	return p ? *p : 0;
}

static inline uint16_t cfi_reader__u16(struct cfi_reader *in)
{
	const uint8_t *p = cfi_reader__take(in, 2);
	uint16_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t cfi_reader__u32(struct cfi_reader *in)
{
	const uint8_t *p = cfi_reader__take(in, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t cfi_reader__u64(struct cfi_reader *in)
{
	const uint8_t *p = cfi_reader__take(in, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof(v));
	return v;
}

/* LEB128 (DWARF 5, 7.6). What does not fit 64 bits is bad. */
uint64_t cfi_reader__uleb_long(struct cfi_reader *in);
int64_t cfi_reader__sleb(struct cfi_reader *in);

static inline uint64_t cfi_reader__uleb(struct cfi_reader *in)
{
	if (in->p < in->end && *in->p < 0x80)
		return *in->p++;
	return cfi_reader__uleb_long(in);
}

#endif
