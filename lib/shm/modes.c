/* SPDX-License-Identifier: BSD-3-Clause */
#include "modes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../rof/rof.h"
#include "../wire/falcon.h"

const struct conf_word shm_ordering_words[] = {{"strong", SHM_ORDER_STRONG},
	{"weak", SHM_ORDER_WEAK}, {"none", SHM_ORDER_NONE}, {NULL, 0}};
const struct conf_word shm_errors_words[] = {
	{"verbs", SHM_ERRORS_VERBS}, {"complete", SHM_ERRORS_COMPLETE}, {NULL, 0}};
const struct conf_word shm_flows_words[] = {{"1", 1}, {"4", FA_FLOWS_MAX}, {NULL, 0}};
const struct conf_word shm_psp_words[] = {{"gcm256", PSP_AES_GCM_256}, {"gcm128", PSP_AES_GCM_128},
	{"gmac256", PSP_GMAC_256}, {"gmac128", PSP_GMAC_128}, {"none", PSP_NO_CRYPTO}, {NULL, 0}};

static int
psp_add(void *arg, const char *item, char *why)
{
	uint16_t *all = arg;
	uint64_t v;

	if (conf_word(item, shm_psp_words, &v, why) < 0)
		return -EINVAL;
	*all |= (uint16_t)(1u << v);
	return 0;
}

int
shm_psp_parse(const char *text, uint16_t *out, char why[CONF_WHY])
{
	uint16_t all = 0;

	if (conf_list(text, psp_add, &all, why) < 0) {
		snprintf(why, CONF_WHY, "is not a list of none, gcm128, gcm256, gmac128, gmac256");
		return -EINVAL;
	}
	*out = all;
	return 0;
}

static int
word_parse(const char *text, const struct conf_word *words, uint8_t *out, char *why)
{
	uint64_t v;

	if (conf_word(text, words, &v, why) < 0)
		return -EINVAL;
	*out = (uint8_t)v;
	return 0;
}

static int
mtu_parse(const char *text, uint16_t *out, char *why)
{
	const struct conf_range r = {
		.kind = CONF_COUNT, .base = 1, .min = ROF_MTU_MIN, .max = ROF_MTU_MAX};
	uint64_t v;

	if (conf_number(text, &r, &v, why) < 0 || (v & (v - 1)) != 0) {
		snprintf(why, CONF_WHY, "is not a power of two within %u..%u", ROF_MTU_MIN,
			ROF_MTU_MAX);
		return -EINVAL;
	}
	*out = (uint16_t)v;
	return 0;
}

const char *const shm_modes_keys[SHM_MODES_KEYS] = {"ordering", "errors", "flows", "mtu", "psp"};

int
shm_modes_set(struct shm_modes *modes, const char *key, const char *text, char why[CONF_WHY])
{
	if (strcmp(key, "ordering") == 0)
		return word_parse(text, shm_ordering_words, &modes->ordering, why);
	if (strcmp(key, "errors") == 0)
		return word_parse(text, shm_errors_words, &modes->errors, why);
	if (strcmp(key, "flows") == 0)
		return word_parse(text, shm_flows_words, &modes->flows, why);
	if (strcmp(key, "mtu") == 0)
		return mtu_parse(text, &modes->mtu, why);
	if (strcmp(key, "psp") == 0)
		return shm_psp_parse(text, &modes->psp, why);
	return -ESRCH;
}
