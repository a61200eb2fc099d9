/* SPDX-License-Identifier: BSD-3-Clause */
#include "output_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Frees the nodes below `n`, and `n`. The tree is deep only where commands nest records. */
static void
node_free(struct node *n)
{
	struct node *next;

	for (struct node *c = n->first; c != NULL; c = next) {
		next = c->next;
		node_free(c);
	}
	free(n);
}

static struct node *
node_make(enum node_kind kind, const char *key, size_t text)
{
	struct node *n = calloc(1, sizeof(*n) + text);

	if (n != NULL) {
		n->kind = kind;
		n->key = key;
	}
	return n;
}

/* Appends a node to the current record or list. Returns NULL after a refusal. */
static struct node *
node_add(struct cmd_out *o, enum node_kind kind, const char *key, size_t text)
{
	struct node *n;

	if (o->refused)
		return NULL;
	n = node_make(kind, key, text);
	if (n == NULL) {
		cmd_refuse(o, "memory is exhausted");
		return NULL;
	}
	n->parent = o->at;
	if (o->at->last != NULL)
		o->at->last->next = n;
	else
		o->at->first = n;
	o->at->last = n;
	return n;
}

struct cmd_out *
cmd_out_new(void)
{
	struct cmd_out *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	o->root = node_make(NODE_RECORD, NULL, 0);
	o->at = o->root;
	if (o->root != NULL)
		return o;
	free(o);
	return NULL;
}

void
cmd_out_free(struct cmd_out *o)
{
	if (o == NULL)
		return;
	node_free(o->root);
	free(o);
}

static void
output_begin(struct cmd_out *o, enum node_kind kind, const char *key)
{
	struct node *n = node_add(o, kind, key, 0);

	if (n != NULL)
		o->at = n;
}

void
cmd_record(struct cmd_out *o, const char *key)
{
	output_begin(o, NODE_RECORD, key);
}

void
cmd_list(struct cmd_out *o, const char *key)
{
	output_begin(o, NODE_LIST, key);
}

void
cmd_end(struct cmd_out *o)
{
	if (!o->refused && o->at->parent != NULL)
		o->at = o->at->parent;
}

/* Replaces the bytes that a terminal could take for commands. */
static void
output_clean(char *text)
{
	for (; *text != '\0'; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void
output_text(struct cmd_out *o, enum node_kind kind, const char *key, const char *fmt, va_list ap)
{
	struct node *n;
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	n = len < 0 ? NULL : node_add(o, kind, key, (size_t)len + 1);
	if (n == NULL)
		return;
	vsnprintf(n->text, (size_t)len + 1, fmt, ap);
	output_clean(n->text);
}

void
cmd_text(struct cmd_out *o, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	output_text(o, NODE_TEXT, key, fmt, ap);
	va_end(ap);
}

void
cmd_number(struct cmd_out *o, const char *key, uint64_t value)
{
	struct node *n = node_add(o, NODE_NUMBER, key, 0);

	if (n != NULL)
		n->number = value;
}

void
cmd_flag(struct cmd_out *o, const char *key, bool value)
{
	struct node *n = node_add(o, NODE_FLAG, key, 0);

	if (n != NULL)
		n->number = value;
}

int
cmd_say(struct cmd_out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	output_text(o, NODE_SENTENCE, "message", fmt, ap);
	va_end(ap);
	return 0;
}

int
cmd_refuse(struct cmd_out *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->refusal, sizeof(o->refusal), fmt, ap);
	va_end(ap);
	output_clean(o->refusal);
	o->refused = true;
	return -EINVAL;
}

const char *
cmd_refusal(const struct cmd_out *o)
{
	return o->refused ? o->refusal : NULL;
}
