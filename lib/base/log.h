/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for people: start, stop, refused requests. The data path logs nothing; it counts. */
#ifndef SAKER_BASE_LOG_H
#define SAKER_BASE_LOG_H

#define SK_LOG_LINE 512 /* bytes of a line, with its NUL; longer ones are cut */

enum sk_log_level { SK_LOG_ERR, SK_LOG_WARNING, SK_LOG_INFO, SK_LOG_DEBUG };

/* Writes one line, which `fmt` gives without its newline, when `level` is at most the level set
 * (SK_LOG_INFO at first). Lines go to stderr until sk_log_set() sets another sink. */
void sk_log(enum sk_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the highest level that is logged, and the sink of lines; NULL: stderr. Not safe while
 * another thread logs. */
void sk_log_set(enum sk_log_level most, void (*sink)(enum sk_log_level level, const char *line));

#endif
