/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints an output for people. The values of a record stand below each other; a list of records
 * without nested ones is a table. The last column of a table wraps, if it is text. A row that is
 * still wider than CMD_WIDTH continues, as the headings do, on further lines, or is printed like a
 * record if it has many values.
 */
#include "output_priv.h"

#include <inttypes.h>
#include <string.h>

#define STEP        2 /* columns by which the contents of a nested record are moved */
#define HANG        4 /* columns by which the further lines of a row are moved */
#define GAP         2 /* columns between two columns of a table */
#define COLUMNS_MAX 32
#define FOLDED_MAX  8  /* most columns of a table whose rows take several lines */
#define WRAPPED_MIN 24 /* least width of a last column that wraps */
#define CELL_LEN    24 /* bytes of a number, with its 0 */

static void
text_pad(size_t n, FILE *to)
{
	fprintf(to, "%*s", (int)n, "");
}

/* Prints a key with spaces for '_'. Returns its width. */
static size_t
text_label(const char *key, FILE *to)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < n; i++)
		fputc(key[i] == '_' ? ' ' : key[i], to);
	return n;
}

/* Returns the text of a value, in `buf` if it is a number. */
static const char *
text_value(const struct node *n, char buf[CELL_LEN])
{
	if (n->kind == NODE_TEXT || n->kind == NODE_SENTENCE)
		return n->text;
	if (n->kind == NODE_FLAG)
		return n->number != 0 ? "yes" : "no";
	snprintf(buf, CELL_LEN, "%" PRIu64, n->number);
	return buf;
}

/* Returns how many bytes of a text fit in `room` columns: up to a space, if there is one. */
static size_t
text_piece(const char *text, size_t room)
{
	size_t n = strlen(text);

	if (n <= room)
		return n;
	for (n = room; n > 0 && text[n] != ' '; n--)
		;
	return n > 0 ? n : room;
}

/* Prints a text from column `at` on, where the line stands, in as many lines as it needs. */
static void
text_wrapped(const char *text, size_t at, FILE *to)
{
	size_t room = at + HANG < CMD_WIDTH ? CMD_WIDTH - at : HANG;
	size_t n = text_piece(text, room);

	fwrite(text, 1, n, to);
	for (text += n; *text != '\0'; text += n) {
		text += strspn(text, " ");
		n = text_piece(text, room);
		fputc('\n', to);
		text_pad(at, to);
		fwrite(text, 1, n, to);
	}
}

/* ---- Tables ---- */

struct column {
	const char *key;
	size_t width, at; /* `at`: where it begins in its line */
	unsigned line;    /* of a row, from 0 */
	bool right;       /* aligned: all its values are numbers */
};

struct table {
	struct column column[COLUMNS_MAX];
	unsigned n, lines;
	size_t indent;
};

static bool
text_is_table(const struct node *list)
{
	for (const struct node *r = list->first; r != NULL; r = r->next)
		for (const struct node *v = r->first; v != NULL; v = v->next)
			if (node_nests(v))
				return false;
	return true;
}

/* Returns the column of a key, from `guess` on, or NULL if the table is full. Adds it if it is new.
 * Keys are compared as pointers first: most rows have the same keys in the same order. */
static struct column *
table_column(struct table *t, const char *key, unsigned guess)
{
	struct column *c;

	if (guess < t->n && t->column[guess].key == key)
		return &t->column[guess];
	for (unsigned i = 0; i < t->n; i++)
		if (strcmp(t->column[i].key, key) == 0)
			return &t->column[i];
	if (t->n == COLUMNS_MAX)
		return NULL;
	c = &t->column[t->n++];
	*c = (struct column){.key = key, .width = strlen(key), .right = true};
	return c;
}

static void
table_measure(struct table *t, const struct node *list)
{
	char buf[CELL_LEN];

	for (const struct node *r = list->first; r != NULL; r = r->next) {
		unsigned guess = 0;

		for (const struct node *v = r->first; v != NULL; v = v->next) {
			struct column *c = table_column(t, v->key, guess++);
			size_t width = strlen(text_value(v, buf));

			if (c == NULL)
				continue;
			if (width > c->width)
				c->width = width;
			c->right &= v->kind == NODE_NUMBER;
		}
	}
}

/* Makes the last column as wide as the others permit, if it is text that can wrap. */
static void
table_squeeze(struct table *t)
{
	struct column *last = &t->column[t->n - 1];
	size_t at = t->indent;

	for (unsigned i = 0; i + 1 < t->n; i++)
		at += t->column[i].width + GAP;
	if (!last->right && at + WRAPPED_MIN <= CMD_WIDTH && at + last->width > CMD_WIDTH)
		last->width = CMD_WIDTH - at;
}

/* Distributes the columns over the lines of a row. */
static void
table_place(struct table *t)
{
	size_t at = t->indent, most = CMD_WIDTH - t->indent - HANG;
	bool full = false;

	for (unsigned i = 0; i < t->n; i++) {
		struct column *c = &t->column[i];

		if (c->width > most)
			c->width = most;
		if (full || (at > t->indent && at + c->width > CMD_WIDTH)) {
			t->lines++;
			at = t->indent + HANG;
		}
		/* The text of the widest columns may wrap, which permits no column after it. */
		full = c->width == most;
		c->line = t->lines;
		c->at = at;
		at += c->width + GAP;
	}
	t->lines++;
}

static const struct node *
text_find(const struct node *record, const char *key)
{
	for (const struct node *v = record->first; v != NULL; v = v->next)
		if (v->key == key || strcmp(v->key, key) == 0)
			return v;
	return NULL;
}

/* Prints one line of a row, or of the headings if `record` is NULL. */
static void
table_line(const struct table *t, const struct node *record, unsigned line, FILE *to)
{
	char buf[CELL_LEN];
	size_t col = 0;

	for (unsigned i = 0; i < t->n; i++) {
		const struct column *c = &t->column[i];
		const struct node *v = record != NULL ? text_find(record, c->key) : NULL;
		const char *text = v != NULL ? text_value(v, buf) : record != NULL ? "-" : c->key;
		size_t len = strlen(text), at = c->at;

		if (c->line != line)
			continue;
		if (c->right && len < c->width)
			at += c->width - len;
		text_pad(at - col, to);
		if (record == NULL)
			text_label(text, to);
		else
			text_wrapped(text, at, to);
		col = at + (len < c->width ? len : c->width);
	}
	fputc('\n', to);
}

/* Prints a list as a table. Returns false if it would not be readable. */
static bool
text_table(const struct node *list, size_t indent, FILE *to)
{
	struct table t = {.indent = indent};

	table_measure(&t, list);
	if (t.n == 0)
		return false;
	table_squeeze(&t);
	table_place(&t);
	if (t.lines > 1 && t.n > FOLDED_MAX)
		return false;
	for (unsigned l = 0; l < t.lines; l++)
		table_line(&t, NULL, l, to);
	for (const struct node *r = list->first; r != NULL; r = r->next)
		for (unsigned l = 0; l < t.lines; l++)
			table_line(&t, r, l, to);
	return true;
}

/* ---- Records ---- */

static void text_record(const struct node *n, size_t indent, FILE *to);

static void
text_list(const struct node *n, size_t indent, FILE *to)
{
	if (n->first == NULL) {
		text_pad(indent, to);
		fputs("(no ", to);
		text_label(n->key, to);
		fputs(")\n", to);
	} else if (!text_is_table(n) || !text_table(n, indent, to)) {
		for (const struct node *r = n->first; r != NULL; r = r->next) {
			text_record(r, indent, to);
			if (r->next != NULL)
				fputc('\n', to);
		}
	}
}

/* Prints the values of a record, in a column behind their labels. */
static void
text_values(const struct node *n, size_t indent, FILE *to)
{
	size_t width = 0;
	char buf[CELL_LEN];

	for (const struct node *v = n->first; v != NULL; v = v->next)
		if (!node_nests(v) && v->kind != NODE_SENTENCE && strlen(v->key) > width)
			width = strlen(v->key);
	for (const struct node *v = n->first; v != NULL; v = v->next) {
		if (node_nests(v))
			continue;
		text_pad(indent, to);
		if (v->kind == NODE_SENTENCE) {
			text_wrapped(v->text, indent, to);
		} else {
			text_pad(width - text_label(v->key, to) + GAP, to);
			text_wrapped(text_value(v, buf), indent + width + GAP, to);
		}
		fputc('\n', to);
	}
}

static void
text_record(const struct node *n, size_t indent, FILE *to)
{
	text_values(n, indent, to);
	for (const struct node *v = n->first; v != NULL; v = v->next) {
		bool alone = n->parent == NULL && n->first == n->last;

		if (!node_nests(v))
			continue;
		if (!alone && v->first != NULL) {
			text_pad(indent, to);
			text_label(v->key, to);
			fputs(":\n", to);
		}
		if (v->kind == NODE_LIST)
			text_list(v, alone ? indent : indent + STEP, to);
		else
			text_record(v, alone ? indent : indent + STEP, to);
	}
}

void
cmd_print_text(const struct cmd_out *o, FILE *to)
{
	if (!o->refused)
		text_record(o->root, 0, to);
}
