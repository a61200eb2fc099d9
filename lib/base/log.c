/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call formats one line, so that a sink gets whole lines from any thread. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

static void
to_stderr(enum sk_log_level level, const char *line)
{
	static const char *const prefix[] = {
		"saker: error: ",
		"saker: warning: ",
		"saker: ",
		"saker: debug: ",
	};

	flockfile(stderr);
	fputs(prefix[level], stderr);
	fputs(line, stderr);
	fputc('\n', stderr);
	funlockfile(stderr);
}

static enum sk_log_level log_most = SK_LOG_INFO;
static void (*log_sink)(enum sk_log_level level, const char *line) = to_stderr;

void
sk_log(enum sk_log_level level, const char *fmt, ...)
{
	char line[SK_LOG_LINE];
	va_list ap;

	if (level > log_most)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_sink(level, line);
}

void
sk_log_set(enum sk_log_level most, void (*sink)(enum sk_log_level level, const char *line))
{
	log_most = most;
	log_sink = sink != NULL ? sink : to_stderr;
}
