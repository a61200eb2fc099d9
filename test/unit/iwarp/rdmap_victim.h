/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end to which malformed segments are sent: a live QP with regions of each kind, two receives
 * of 100 bytes, an outstanding Read of 64 bytes (MSN 1) and a Write behind it; and the checks
 * afterwards.
 */
#ifndef RDMAP_VICTIM_H
#define RDMAP_VICTIM_H

#include "rdmap_pair.h"

#define VICTIM_LEN 4096 /* bytes of each region */

enum stag { WRITABLE, READABLE, FOREIGN, GONE, LOCAL, HIGH, UNKNOWN };
enum quote { NONE, M_D, M_D_R }; /* the Terminate's header bits that are set */

extern struct end e;
extern struct rd_mr *writable, *readable, *foreign, *gone, *local, *high;

void victim_start(void);
uint32_t stag_of(enum stag s);
/* Checks that the end has sent the expected Terminate, and that it quotes the segment that was
 * sent. */
void expect_terminate(const char *name, uint8_t layer, uint8_t etype, uint8_t code,
	enum quote quote, const uint8_t *seg, uint32_t seg_len);
/* Checks that the QP is in ERR, that it was closed once and in order, and that all requests were
 * flushed in posting order; `first_recv` and `first_read` are the statuses of the oldest ones.
 * Destroys the end. */
void expect_end(const char *name, enum rd_status first_recv, enum rd_status first_read);
/* Writes the segment to `seg` and feeds it. */
void read_request_seg(uint8_t seg[46], uint32_t msn, const struct wire_read_request *rr);

#endif
