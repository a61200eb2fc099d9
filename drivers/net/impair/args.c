/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the vdev's arguments with a table of keys: kind, range and place of each value. */
#include "args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

#include "../../../lib/base/log.h"
#include "../../../lib/base/mem.h"
#include "impair_priv.h"

enum kind { PROBABILITY, U32, U64, BOOL, DIR, NAME };

struct key {
	const char *name;
	enum kind kind;
	size_t offset; /* of the value in struct impair_args */
	uint64_t min, max;
};

#define CFG(field) offsetof(struct impair_args, cfg.field)

static const struct key keys[] = {
	{"port", NAME, offsetof(struct impair_args, port), 0, 0},
	{"seed", U64, CFG(seed), 0, UINT64_MAX},
	{"drop", PROBABILITY, CFG(drop), 0, 0},
	{"dup", PROBABILITY, CFG(dup), 0, 0},
	{"reorder", PROBABILITY, CFG(reorder), 0, 0},
	{"ecn", PROBABILITY, CFG(ecn), 0, 0},
	{"corrupt", PROBABILITY, CFG(corrupt), 0, 0},
	{"corrupt_crc", PROBABILITY, CFG(corrupt_crc), 0, 0},
	{"delay_us", U32, CFG(delay_us), 0, IMPAIR_MAX_US},
	{"jitter_us", U32, CFG(jitter_us), 0, IMPAIR_MAX_US},
	{"rate_mbps", U32, CFG(rate_mbps), 0, UINT32_MAX},
	{"reorder_frames", U32, CFG(reorder_frames), 1, IMPAIR_ASIDE},
	{"reorder_us", U32, CFG(reorder_us), 1, IMPAIR_MAX_US},
	{"dir", DIR, 0, 0, 0},
	{"queue", U32, offsetof(struct impair_args, queue), IMPAIR_QUEUE_MIN, IMPAIR_QUEUE_MAX},
	{"nic", BOOL, offsetof(struct impair_args, nic), 0, 1},
};

static bool
args_parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out >= min &&
	       *out <= max;
}

static bool
parse_dir(const char *text, struct impair_cfg *cfg)
{
	cfg->tx = strcmp(text, "both") == 0 || strcmp(text, "tx") == 0;
	cfg->rx = strcmp(text, "both") == 0 || strcmp(text, "rx") == 0;
	return cfg->tx || cfg->rx;
}

static bool
parse_value(const struct key *k, const char *text, struct impair_args *args)
{
	void *to = (char *)args + k->offset;
	uint64_t n = 0;
	char *end;
	double p;

	switch (k->kind) {
	case PROBABILITY:
		p = strtod(text, &end);
		*(double *)to = p;
		return end != text && *end == '\0' && p >= 0 && p <= 1;
	case DIR:
		return parse_dir(text, &args->cfg);
	case NAME:
		snprintf(args->port, sizeof(args->port), "%s", text);
		return *text != '\0' && strlen(text) < sizeof(args->port);
	case U64:
	case U32:
	case BOOL:
		break;
	}
	if (!args_parse_number(text, k->min, k->max, &n))
		return false;
	if (k->kind == U64)
		*(uint64_t *)to = n;
	else if (k->kind == U32)
		*(uint32_t *)to = (uint32_t)n;
	else
		*(bool *)to = n != 0;
	return true;
}

static int
parse_pair(const char *name, const char *text, void *opaque)
{
	for (size_t i = 0; i < SK_ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (text != NULL && parse_value(&keys[i], text, opaque))
			return 0;
		sk_log(SK_LOG_ERR, "impair: %s=%s is malformed or out of range", name,
			text != NULL ? text : "");
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
