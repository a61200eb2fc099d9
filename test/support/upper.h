/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Upper halves of the vector registers. A routine that leaves bits there makes the SSE instructions
 * that follow slow on many processors. The processor reports whether the halves are in use by its
 * XINUSE bitmap (XGETBV with ECX = 1).
 */
#ifndef SAKER_TEST_SUPPORT_UPPER_H
#define SAKER_TEST_SUPPORT_UPPER_H

#include <cpuid.h>
#include <immintrin.h>
#include <stdbool.h>

#define UPPER_IN_USE 0x44ull /* bits 2 and 6: of the 256-bit and of the 512-bit registers */

static inline __attribute__((target("xsave"))) bool
upper_in_use(void)
{
	return (_xgetbv(1) & UPPER_IN_USE) != 0;
}

static inline __attribute__((target("avx"))) void
upper_clear(void)
{
	_mm256_zeroupper();
}

static inline __attribute__((target("avx"))) bool
upper_shows(void)
{
	__asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n\t"
			 "vinsertf128 $1, %%xmm0, %%ymm0, %%ymm0" ::
				 : "xmm0");
	return upper_in_use();
}

/* Returns whether the processor reports halves in use, and that _mm256_zeroupper() clears them. */
static inline bool
upper_is_reported(void)
{
	unsigned a = 0, b = 0, c = 0, d = 0;
	bool shows;

	if (!__builtin_cpu_supports("avx") || !__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 4))
		return false;
	shows = upper_shows();
	upper_clear();
	return shows && !upper_in_use();
}

#endif
