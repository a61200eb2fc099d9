/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of a script (see script.h): parses it, and compares it with the segment script.last. */
#ifndef SAKER_TEST_SCRIPT_LINE_H
#define SAKER_TEST_SCRIPT_LINE_H

#include "script.h"

struct script_line {
	uint8_t flags;
	uint32_t from, to, ack, win, mss, ws, ts_val, ts_ecr;
	bool has_ack, has_win, has_mss, has_ws, has_ts;
	bool nots, sackok, nosack, ce, ect, nopoll;
	unsigned nsack;
	uint32_t left[TCP_MAX_SACK], right[TCP_MAX_SACK];
};

void script_line_parse(struct script_line *l, int at, const char *text);
void script_line_compare(struct script *p, int at, const char *text, const struct script_line *l);

#endif
