/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of values that settings have. values.c parses their text, values_format.c writes it.
 * The notation of numbers is lib/conf's. */
#ifndef APP_SAKER_VALUES_H
#define APP_SAKER_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "settings.h"

enum kind {
	KIND_U8,
	KIND_U16,
	KIND_U32,
	KIND_UINT,
	KIND_POWER,   /* uint32_t: a power of two */
	KIND_COUNT,   /* uint64_t */
	KIND_BYTES,   /* uint64_t */
	KIND_BYTES32, /* uint32_t */
	KIND_TIME,    /* uint64_t in ns */
	KIND_BOOL,
	KIND_TEXT,       /* char [max] */
	KIND_IDLE,       /* enum eng_idle */
	KIND_CC,         /* const char *: name of a congestion control */
	KIND_LOOPS,      /* struct loop_list */
	KIND_PRIORITIES, /* uint8_t [ENG_PRIORITIES] */
	KIND_ADDR,
	KIND_PREFIX,
	KIND_HOST, /* struct prefix: the address of a host on its network */
	KIND_MODE, /* uint32_t: permissions of a file, an octal number */
	KIND_VLAN, /* uint16_t; the text 0 stands for none */
	KIND_UID,  /* uint32_t; ENG_NO_UID is formatted as nothing */
	KIND_GIGA, /* uint64_t: bits per second; 10^9 without a unit */
	KIND_MEGA, /* uint64_t: 10^6 without a unit */
	/* For Falcon. */
	KIND_PSP,      /* uint16_t: a list of bits 1 << enum psp_version */
	KIND_ORDERING, /* uint8_t: enum rof_ordering */
	KIND_ERRORS,   /* uint8_t: enum rof_errors */
	/* The same as enum shm_ordering and enum shm_errors; 0 is formatted as nothing. */
	KIND_ORDERING_CHOICE,
	KIND_ERRORS_CHOICE,
	KIND_FLOWS,   /* uint8_t */
	KIND_RNR,     /* uint8_t: the code of a delay (Falcon 7.8) */
	KIND_TICKS,   /* uint32_t: a time, rounded to Falcon's ticks */
	KIND_1024THS, /* uint32_t: a number with decimals, for Falcon's windows and factors */
	KIND_RUE,     /* const char *: name of a congestion control of Falcon */
	KIND_DELAY,   /* uint8_t: enum fa_delay_select */
	KIND_LEVEL,   /* uint8_t: enum sk_log_level */
	KIND_SOURCE,  /* char [max]: the path of a file, or credential:NAME */
	KIND_RANGE,   /* struct prefix; an address alone has its full length */
};

/* Parses `text` and stores the value at `at`. Returns 0, or -EINVAL with the end of a sentence in
 * `why` ("is not a number within 1..9"). */
int value_parse(
	enum kind kind, uint64_t min, uint64_t max, const char *text, void *at, char why[WHY_LEN]);
/* Parses the number of an object in the argument of a command or in a name: digits, decimal or
 * hexadecimal (0x), and nothing else. Returns false when `text` is no such number. */
bool value_number(const char *text, uint32_t *out);
/* Writes to `buf` the text from which value_parse() makes the value at `at`. */
void value_format(enum kind kind, const void *at, char *buf, size_t len);

#endif
