/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that stand for values, for values.c and values_format.c. */
#ifndef APP_SAKER_VALUES_PRIV_H
#define APP_SAKER_VALUES_PRIV_H

#include "../../lib/conf/conf.h"
#include "../../lib/shm/modes.h"
#include "values.h"

extern const struct conf_word value_idle_words[];

/* Returns the nearest 1024th to a number that is not negative. */
static inline uint32_t
value_1024ths(double v)
{
	return (uint32_t)(v * 1024 + 0.5);
}

/* Returns the words for a kind that is one byte. */
const struct conf_word *value_byte_words(enum kind kind);

#endif
