/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of the vdev's arguments. */
#ifndef IMPAIR_ARGS_H
#define IMPAIR_ARGS_H

#include "impair.h"

#define IMPAIR_MAX_US 10000000 /* the longest time, in microseconds: ten seconds */

struct impair_args {
	struct impair_cfg cfg;
	char port[64]; /* name or number of the lower port */
	uint32_t queue;
	bool nic;
};

/* Sets *args to the defaults, then to the values in `text` (key=value,...). Returns 0, or logs what
 * is wrong and returns -EINVAL. */
int impair_args_parse(const char *text, struct impair_args *args);
/* Returns whether all values of *c are in their ranges. */
bool impair_cfg_is_valid(const struct impair_cfg *c);

#endif
