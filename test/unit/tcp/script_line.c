/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a line of a script, and compares a segment with it. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "script_line.h"

static uint8_t
parse_flags(const char *s)
{
	static const char names[] = "FSRP.UEW";
	uint8_t f = 0;

	for (; *s; s++) {
		const char *at = strchr(names, *s);

		cr_assert(at, "flag %c", *s);
		f |= (uint8_t)(1u << (at - names));
	}
	return f;
}

static void
parse_sack(struct script_line *l, char *s)
{
	char *save = NULL;

	for (char *w = strtok_r(s, ",", &save); w; w = strtok_r(NULL, ",", &save), l->nsack++)
		cr_assert_eq(sscanf(w, "%u:%u", &l->left[l->nsack], &l->right[l->nsack]), 2);
}

/* Parses a word that has a number. */
static bool
parse_number(struct script_line *l, const char *w, char **save)
{
	const struct {
		const char *name;
		uint32_t *value;
		bool *has;
	} words[] = {
		{"ack", &l->ack, &l->has_ack},
		{"win", &l->win, &l->has_win},
		{"mss", &l->mss, &l->has_mss},
		{"ws", &l->ws, &l->has_ws},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(words); i++) {
		if (strcmp(w, words[i].name) == 0) {
			*words[i].has =
				sscanf(strtok_r(NULL, " ", save), "%u", words[i].value) == 1;
			return true;
		}
	}
	return false;
}

static bool
parse_switch(struct script_line *l, const char *w)
{
	const struct {
		const char *name;
		bool *has;
	} words[] = {
		{"sackok", &l->sackok},
		{"nosack", &l->nosack},
		{"nots", &l->nots},
		{"ce", &l->ce},
		{"ect", &l->ect},
		{"nopoll", &l->nopoll},
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(words); i++) {
		if (strcmp(w, words[i].name) == 0) {
			*words[i].has = true;
			return true;
		}
	}
	return false;
}

void
script_line_parse(struct script_line *l, int at, const char *text)
{
	char buf[256], *save = NULL, *w;

	memset(l, 0, sizeof(*l));
	cr_assert_lt(strlen(text), sizeof(buf));
	strcpy(buf, text);
	l->flags = parse_flags(strtok_r(buf, " ", &save));
	w = strtok_r(NULL, " ", &save);
	cr_assert(w && sscanf(w, "%u:%u", &l->from, &l->to) == 2, "line %d: range", at);
	while ((w = strtok_r(NULL, " ", &save)) != NULL) {
		if (parse_number(l, w, &save) || parse_switch(l, w))
			continue;
		if (strcmp(w, "ts") == 0)
			l->has_ts = sscanf(strtok_r(NULL, " ", &save), "%u/%u", &l->ts_val,
					    &l->ts_ecr) == 2;
		else if (strcmp(w, "sack") == 0)
			parse_sack(l, strtok_r(NULL, " ", &save));
		else
			cr_assert_fail("line %d: word %s", at, w);
	}
}

static void
same(int at, const char *text, const char *what, bool asked, uint32_t got, uint32_t want)
{
	cr_assert(!asked || got == want, "line %d: %s %u, expected \"%s\"", at, what, got, text);
}

static void
compare_options(struct script *p, int at, const char *text, const struct script_line *l)
{
	const struct wire_tcp *t = &p->last.tcp;

	same(at, text, "MSS", l->has_mss, t->mss, l->mss);
	same(at, text, "window scale", l->has_ws, t->wscale, l->ws);
	same(at, text, "SACK permitted", l->sackok, t->sack_ok, true);
	same(at, text, "timestamps", l->nots, t->ts, false);
	same(at, text, "timestamps", l->has_ts, t->ts, true);
	same(at, text, "echo", l->has_ts, t->ts_ecr, l->ts_ecr);
	same(at, text, "blocks", l->nosack || l->nsack, t->nsack, l->nsack);
	for (unsigned i = 0; i < l->nsack; i++) {
		same(at, text, "left edge", true, t->sack[i].left - SC_PEER_ISN, l->left[i]);
		same(at, text, "right edge", true, t->sack[i].right - SC_PEER_ISN, l->right[i]);
	}
}

void
script_line_compare(struct script *p, int at, const char *text, const struct script_line *l)
{
	const struct wire_tcp *t = &p->last.tcp;
	uint8_t mask = l->flags & TCP_PSH ? 0xff : (uint8_t)~TCP_PSH;

	same(at, text, "flags", true, t->flags & mask, l->flags);
	same(at, text, "first", true, t->seq - p->iss, l->from);
	same(at, text, "length", true, p->last.len, l->to - l->from);
	same(at, text, "ack", l->has_ack, t->ack - SC_PEER_ISN, l->ack);
	same(at, text, "window", l->has_win, t->window, l->win);
	same(at, text, "ECN", l->ect, p->last.ecn, IP_ECN_ECT0);
	compare_options(p, at, text, l);
}
