/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notation of values and of configuration files, for all programs and drivers. A number is
 * decimal or hexadecimal (0x), may have decimals, and may have a unit: k, m and g are powers of
 * 1024 for bytes and powers of 1000 for everything else; times have ns, us, ms and s. Case does not
 * matter. A function that refuses returns -EINVAL and writes to `why` the end of a sentence that
 * begins with the value, for instance "is not a number within 1..9"; it then stores nothing.
 */
#ifndef SAKER_CONF_H
#define SAKER_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"

#define CONF_WHY   256 /* bytes that hold each end of a sentence, with its 0 */
#define CONF_SHOWN 68  /* bytes that hold each result of conf_shown(), with its 0 */

enum conf_kind {
	CONF_COUNT, /* k = 1000 */
	CONF_BYTES, /* k = 1024 */
	CONF_BITS,  /* bits per second, k = 1000 */
	CONF_TIME,  /* ns */
};

/* The numbers that a key accepts. */
struct conf_range {
	enum conf_kind kind;
	/* The value of 1 without a unit, in bytes, bits, ns; 0: only the number 0 needs no unit. */
	uint64_t base;
	/* The unit of the result, of `min` and of `max`; 0: 1. A value that is not a multiple of it
	 * is refused. */
	uint64_t quantum;
	uint64_t min, max;
};
int conf_number(const char *text, const struct conf_range *r, uint64_t *out, char why[CONF_WHY]);
/* Parses a number from min to max without units: the key's name has the unit. */
int conf_real(const char *text, double min, double max, double *out, char why[CONF_WHY]);
/* Parses an octal number, for instance the mode of a file. */
int conf_octal(const char *text, uint32_t min, uint32_t max, uint32_t *out, char why[CONF_WHY]);
/* Parses yes or no, on or off, true or false, 1 or 0. */
int conf_bool(const char *text, bool *out, char why[CONF_WHY]);

/* A table of words ends with the name NULL. */
struct conf_word {
	const char *name;
	uint64_t value;
};
int conf_word(const char *text, const struct conf_word *words, uint64_t *out, char why[CONF_WHY]);
/* Returns the first word with this value, or "". */
const char *conf_word_name(const struct conf_word *words, uint64_t value);

/* Copies a text of 1 to size - 1 bytes to `out`, which has `size` bytes. */
int conf_text(const char *text, size_t size, char *out, char why[CONF_WHY]);
int conf_addr(const char *text, struct sk_addr *out, char why[CONF_WHY]);
/* Parses "10.0.0.1/24"; the length is in bits of the address's own family. */
int conf_prefix(const char *text, struct sk_addr *addr, unsigned *len, char why[CONF_WHY]);
/* Parses the MAC address of one station. */
int conf_mac(const char *text, uint8_t out[6], char why[CONF_WHY]);
/* Checks that one host may have an address on a network with this prefix length: that it is neither
 * unspecified, loopback or multicast, nor the address or the broadcast address of the network. */
int conf_host(const struct sk_addr *addr, unsigned len, char why[CONF_WHY]);
/* As conf_prefix(), for an address that one host may have by conf_host(). */
int conf_host_prefix(const char *text, struct sk_addr *addr, unsigned *len, char why[CONF_WHY]);
/* Calls `each` for the items of a list that commas, spaces and tabs separate, until it returns
 * something else than 0. Returns that, or the number of items. */
int conf_list(const char *text, int (*each)(void *arg, const char *item, char why[CONF_WHY]),
	void *arg, char why[CONF_WHY]);

/* Writes the number in the largest unit that divides it. */
void conf_format(enum conf_kind kind, uint64_t v, char *buf, size_t len);
/* Writes to `buf` what a sentence may repeat of a value: its first 60 bytes, without characters
 * that a terminal does not print. Returns `buf`. */
const char *conf_shown(const char *text, char buf[CONF_SHOWN]);

/* ---- Files ---- */

#define CONF_LINE     1024      /* bytes of a line, with its end */
#define CONF_FILE_MAX (1 << 20) /* bytes of a file */

/* Where an entry stands. */
struct conf_place {
	const char *file;
	unsigned line;
	const char *section;
};
#define CONF_SENTENCE 1024 /* bytes that hold a sentence about an entry, with its 0 */

/* The receiver of a file's contents. A function that returns less than 0 ends the reading; `why`
 * then holds one sentence, before which conf_read() writes the file and the line. */
struct conf_reader {
	/* A section begins; may be NULL. */
	int (*section)(void *arg, const struct conf_place *at, char why[CONF_SENTENCE]);
	int (*entry)(void *arg, const struct conf_place *at, const char *key, const char *value,
		char why[CONF_SENTENCE]);
};
/* Reads a file of [section] and key = value lines. A semicolon begins a comment, and so does a line
 * that begins with '#'. A line that is none of these, a second section of the same name, a second
 * key of the same name in a section, a key before the first section and a key without a value are
 * refused. Returns 0, or -errno with one sentence in `why`, which names the file and the line. */
int conf_read(const char *path, const struct conf_reader *r, void *arg, char *why, size_t len);
/* Reads such a text of `size` bytes, which has room for one more. `name` stands for the file's
 * name. Changes the text. */
int conf_read_text(char *text, size_t size, const char *name, const struct conf_reader *r,
	void *arg, char *why, size_t len);

#endif
