/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of values that settings have: from text, with a reason when it is refused, and back to
 * text. */
#ifndef APP_SAKER_VALUES_H
#define APP_SAKER_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "settings.h"

enum kind {
	KIND_U8,
	KIND_U16,
	KIND_U32,
	KIND_UINT,
	KIND_BYTES,   /* uint64_t, with k, m, g */
	KIND_BYTES32, /* uint32_t, with k, m, g */
	KIND_TIME,    /* uint64_t nanoseconds, with ns, us, ms, s */
	KIND_BOOL,
	KIND_TEXT,  /* char [max] */
	KIND_IDLE,  /* enum eng_idle */
	KIND_CC,    /* const char *: a congestion control */
	KIND_LOOPS, /* struct loop_list */
	KIND_ADDR,
	KIND_PREFIX,
	KIND_VLAN, /* uint16_t; 0: none */
	/* Falcon's */
	KIND_PSP,      /* uint16_t: bits 1 << enum psp_version, a list */
	KIND_ORDERING, /* uint8_t: enum rof_ordering */
	KIND_ERRORS,   /* uint8_t: enum rof_errors */
	KIND_FLOWS,    /* uint8_t */
	KIND_RNR,      /* uint8_t: the code of a time (Falcon 7.8) */
	KIND_TICKS,    /* uint32_t: a time in Falcon's ticks, to the nearest */
	KIND_WINDOW,   /* uint32_t: packets, as FA_CWND_ONE */
	KIND_PSK,      /* struct eng_falcon_config: its psk, psk_len; formats to nothing */
};

/* Parses `text` to `at`. 0, or -EINVAL with the reason in `why` ("is not a number within 1..9"). */
int value_parse(
	enum kind kind, uint64_t min, uint64_t max, const char *text, void *at, char why[WHY_LEN]);
/* The text that value_parse() would read. */
void value_format(enum kind kind, const void *at, char *buf, size_t len);

#endif
