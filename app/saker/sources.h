/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the files and credentials that hold keys and certificates. */
#ifndef APP_SAKER_SOURCES_H
#define APP_SAKER_SOURCES_H

#include <stdbool.h>

#include "settings.h"

#define SOURCE_MAX 65536 /* most bytes of a file */

/* The 0-terminated contents of a file, in memory that no core dump contains. */
struct source_text {
	char *text;
	size_t len, room; /* bytes; of the contents, and of the memory */
};

/*
 * Reads a source: the path of a file, or credential:NAME, a file in $CREDENTIALS_DIRECTORY. Refuses
 * a file that is not regular, belongs to another user than root or this process's, or is writable
 * by others, and a secret one that others can read. The group may read a secret file of root's,
 * because root has chosen that group. Links are followed; the rules apply to the file itself. The
 * caller frees *out with source_free() in each case. Returns 0, or -EINVAL with the end of a
 * sentence in `why` that begins with key and value.
 */
int source_read(const char *source, bool secret, struct source_text *out, char why[WHY_LEN]);
/* Wipes and frees the contents. */
void source_free(struct source_text *s);

#endif
