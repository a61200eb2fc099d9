/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for people: start, stop, refusals. Never per packet (that is what counters are for). */
#ifndef SAKER_BASE_LOG_H
#define SAKER_BASE_LOG_H

enum sk_log_level { SK_LOG_ERR, SK_LOG_WARNING, SK_LOG_INFO, SK_LOG_DEBUG };

/* One line without its newline. By default lines go to stderr; the launcher sends them to rte_log.
 */
void sk_log(enum sk_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sk_log_set(enum sk_log_level most, void (*sink)(enum sk_log_level level, const char *line));

#endif
