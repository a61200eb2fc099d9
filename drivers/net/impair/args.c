/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the vdev's arguments with a table of keys: kind, range and place of each value. */
#include "args.h"

#include <errno.h>
#include <string.h>

#include <rte_kvargs.h>

#include "../../../lib/base/log.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/conf/conf.h"
#include "impair_priv.h"

enum kind { PROBABILITY, U32, U64, BOOL, DIR, NAME };

struct key {
	const char *name;
	enum kind kind;
	size_t offset; /* of the value in struct impair_args */
	struct conf_range range;
};

#define CFG(field) offsetof(struct impair_args, cfg.field)
#define PLAIN(least, most)                                                                         \
	{                                                                                          \
		CONF_COUNT, 1, 1, least, most                                                      \
	}
#define US(least)                                                                                  \
	{                                                                                          \
		CONF_TIME, 1000, 1000, least, IMPAIR_MAX_US                                        \
	}
#define MEGA 1000000

static const struct key keys[] = {
	{"port", NAME, offsetof(struct impair_args, port)},
	{"seed", U64, CFG(seed), PLAIN(0, UINT64_MAX)},
	{"drop", PROBABILITY, CFG(drop)},
	{"dup", PROBABILITY, CFG(dup)},
	{"reorder", PROBABILITY, CFG(reorder)},
	{"ecn", PROBABILITY, CFG(ecn)},
	{"corrupt", PROBABILITY, CFG(corrupt)},
	{"corrupt_crc", PROBABILITY, CFG(corrupt_crc)},
	{"delay_us", U32, CFG(delay_us), US(0)},
	{"jitter_us", U32, CFG(jitter_us), US(0)},
	{"rate_mbps", U32, CFG(rate_mbps), {CONF_BITS, MEGA, MEGA, 0, UINT32_MAX}},
	{"reorder_frames", U32, CFG(reorder_frames), PLAIN(1, IMPAIR_ASIDE)},
	{"reorder_us", U32, CFG(reorder_us), US(1)},
	{"dir", DIR, 0},
	{"queue", U32, offsetof(struct impair_args, queue),
		PLAIN(IMPAIR_QUEUE_MIN, IMPAIR_QUEUE_MAX)},
	{"nic", BOOL, offsetof(struct impair_args, nic)},
};

static int
parse_dir(const char *text, struct impair_cfg *cfg, char why[CONF_WHY])
{
	static const struct conf_word words[] = {{"both", 3}, {"tx", 1}, {"rx", 2}, {NULL, 0}};
	uint64_t v;

	if (conf_word(text, words, &v, why) < 0)
		return -EINVAL;
	cfg->tx = v & 1;
	cfg->rx = v & 2;
	return 0;
}

static int
parse_value(const struct key *k, const char *text, struct impair_args *args, char why[CONF_WHY])
{
	void *to = (char *)args + k->offset;
	uint64_t n;

	switch (k->kind) {
	case PROBABILITY:
		return conf_real(text, 0, 1, to, why);
	case DIR:
		return parse_dir(text, &args->cfg, why);
	case NAME:
		return conf_text(text, sizeof(args->port), to, why);
	case BOOL:
		return conf_bool(text, to, why);
	case U64:
	case U32:
		break;
	}
	if (conf_number(text, &k->range, &n, why) < 0)
		return -EINVAL;
	if (k->kind == U64)
		*(uint64_t *)to = n;
	else
		*(uint32_t *)to = (uint32_t)n;
	return 0;
}

static int
parse_pair(const char *name, const char *text, void *opaque)
{
	char why[CONF_WHY], shown[CONF_SHOWN];

	for (size_t i = 0; i < SK_ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		text = text != NULL ? text : "";
		if (parse_value(&keys[i], text, opaque, why) == 0)
			return 0;
		sk_log(SK_LOG_ERR, "impair: %s=%s %s", name, conf_shown(text, shown), why);
		return -EINVAL;
	}
	return -EINVAL;
}

int
impair_args_parse(const char *text, struct impair_args *args)
{
	const char *names[SK_ARRAY_LEN(keys) + 1] = {NULL};
	struct rte_kvargs *kv;
	int rc;

	for (size_t i = 0; i < SK_ARRAY_LEN(keys); i++)
		names[i] = keys[i].name;
	*args = (struct impair_args){
		.cfg = {.seed = 1, .reorder_frames = 3, .reorder_us = 1000, .tx = true, .rx = true},
		.queue = 1024,
	};
	kv = rte_kvargs_parse(text, names);
	if (kv == NULL) {
		sk_log(SK_LOG_ERR,
			"impair: \"%s\" has an unknown key or is not a list of key=value", text);
		return -EINVAL;
	}
	rc = rte_kvargs_process(kv, NULL, parse_pair, args);
	rte_kvargs_free(kv);
	if (rc == 0 && args->port[0] == '\0') {
		sk_log(SK_LOG_ERR, "impair: the argument port=, the lower port, is missing");
		rc = -EINVAL;
	}
	return rc < 0 ? -EINVAL : 0;
}

static bool
is_probability(double p)
{
	return p >= 0 && p <= 1;
}

bool
impair_cfg_is_valid(const struct impair_cfg *c)
{
	return is_probability(c->drop) && is_probability(c->dup) && is_probability(c->reorder) &&
	       is_probability(c->ecn) && is_probability(c->corrupt) &&
	       is_probability(c->corrupt_crc) && c->delay_us <= IMPAIR_MAX_US &&
	       c->jitter_us <= IMPAIR_MAX_US && c->reorder_us >= 1 &&
	       c->reorder_us <= IMPAIR_MAX_US && c->reorder_frames >= 1 &&
	       c->reorder_frames <= IMPAIR_ASIDE;
}
