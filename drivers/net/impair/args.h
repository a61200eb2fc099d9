/* SPDX-License-Identifier: BSD-3-Clause */
/* The vdev's arguments as a value. */
#ifndef IMPAIR_ARGS_H
#define IMPAIR_ARGS_H

#include "impair.h"

#define IMPAIR_MAX_US 10000000 /* ten seconds */

struct impair_args {
	struct impair_cfg cfg;
	char port[64]; /* name or number of the lower port */
	uint32_t queue;
	bool nic;
};

/* Defaults first, then `text` as key=value,...; says what is wrong in the log. Returns 0 or
 * -EINVAL. */
int impair_args_parse(const char *text, struct impair_args *args);
bool impair_cfg_is_valid(const struct impair_cfg *c);

#endif
