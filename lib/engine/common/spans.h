/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guarded mappings in the order of their addresses. A signal handler may search them on any
 * thread while another thread changes them: a search takes no lock and never waits for a change. It
 * takes as many steps as the number of mappings has bits, so that the mappings of one client hardly
 * delay the faults of another.
 */
#ifndef SAKER_ENGINE_SPANS_H
#define SAKER_ENGINE_SPANS_H

#include <stddef.h>
#include <stdint.h>

#define ENG_SPANS 65536

/* Adds the mapping [base, base + len), which overlaps no other one, with a number of the caller's.
 * There must be room. The caller excludes other changes. */
void eng_span_add(uintptr_t base, size_t len, uint32_t number);
/* Removes the mapping at `base`, which was added. The caller excludes other changes. */
void eng_span_remove(uintptr_t base);
/* Returns the number of the mapping that contains the address, or -1. A mapping that is being added
 * or removed may be found or not. Any thread; async-signal-safe. */
int eng_span_find(uintptr_t addr);

#endif
