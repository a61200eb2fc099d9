/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes: reads of memory that another process can remove. A probe of a missing page returns false,
 * provided that the process has a handler of SIGBUS that continues at sk_probe_landing(). The table
 * of probes is a section of the program: each probe adds the address of its load and the address at
 * which the handler continues. A probe of a page that is present costs one load.
 */
#ifndef SAKER_BASE_PROBE_H
#define SAKER_BASE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SK_PROBE_PAGE 4096u /* bytes: the smallest page of any memory */

/* Returns whether the byte at `p` can be read. */
static inline __attribute__((always_inline)) bool
sk_probe(const void *p)
{
#ifdef __x86_64__
	/* The distances are relative to the fields of struct sk_probe_site (probe.c). */
	__asm__ goto("1:	testb $0, (%0)\n"
		     "	.pushsection sk_probes, \"a\", @progbits\n"
		     "	.balign 4\n"
		     "	.long 1b - ., %l1 - .\n"
		     "	.popsection"
		     :
		     : "r"(p)
		     : "cc", "memory"
		     : missing);
	return true;
missing:
	return false;
#else
	(void)__atomic_load_n((const volatile uint8_t *)p, __ATOMIC_RELAXED);
	return true;
#endif
}

/* Returns the first byte of [p, p + len) whose page is missing, or NULL; len > 0. */
static inline const uint8_t *
sk_probe_range(const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len;

	do {
		if (!sk_probe(p))
			return p;
		p = (const uint8_t *)(((uintptr_t)p | (SK_PROBE_PAGE - 1)) + 1);
	} while (p < end);
	return NULL;
}

/* Returns the address at which the program continues when the load of a probe at `pc` has raised a
 * signal; 0 when there is no probe at `pc`. Signal handlers may call it. */
uintptr_t sk_probe_landing(uintptr_t pc);

#endif
