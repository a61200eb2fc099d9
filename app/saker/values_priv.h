/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that stand for values, for values.c and values_format.c. */
#ifndef APP_SAKER_VALUES_PRIV_H
#define APP_SAKER_VALUES_PRIV_H

#include "values.h"

struct value_word {
	const char *name;
	uint64_t value;
};

/* Each table ends with the name NULL. */
extern const struct value_word value_size_units[], value_time_units[]; /* in bytes, ns */
extern const struct value_word value_idle_words[], value_psp_words[];

/* Returns the words for a kind that is one byte, and in *all a list of them for sentences. */
const struct value_word *value_byte_words(enum kind kind, const char **all);

#endif
