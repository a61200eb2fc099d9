/* SPDX-License-Identifier: BSD-3-Clause */
/* The notation of the modes of a Falcon connection: that of saker.ini. */
#ifndef SAKER_SHM_MODES_H
#define SAKER_SHM_MODES_H

#include "../conf/conf.h"
#include "shm_msg.h"

/* The words for enum shm_ordering, for enum shm_errors (without the values 0 and ..._ANY), for the
 * numbers of flows, and for enum psp_version. The versions begin with the strongest, in the order
 * in which two peers choose. */
extern const struct conf_word shm_ordering_words[], shm_errors_words[], shm_flows_words[],
	shm_psp_words[];

/* Parses a list of PSP versions. */
int shm_psp_parse(const char *text, uint16_t *out, char why[CONF_WHY]);

/* The keys of the modes. */
#define SHM_MODES_KEYS 5
extern const char *const shm_modes_keys[SHM_MODES_KEYS];
/* Sets the mode with that key. Returns 0, -ESRCH when there is no such key, or -EINVAL with the end
 * of a sentence in `why`. */
int shm_modes_set(struct shm_modes *modes, const char *key, const char *text, char why[CONF_WHY]);

#endif
