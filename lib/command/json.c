/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints an output as one JSON object (RFC 8259). Texts are printable ASCII already. */
#include "output_priv.h"

#include <inttypes.h>

static void
json_string(const char *text, FILE *to)
{
	fputc('"', to);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

static void json_node(const struct node *n, FILE *to);

/* Prints the elements of a record, or of a list. */
static void
json_elements(const struct node *n, FILE *to)
{
	const char *comma = "";

	for (const struct node *c = n->first; c != NULL; c = c->next) {
		fputs(comma, to);
		comma = ",";
		if (n->kind == NODE_RECORD) {
			json_string(c->key, to);
			fputc(':', to);
		}
		json_node(c, to);
	}
}

static void
json_node(const struct node *n, FILE *to)
{
	switch (n->kind) {
	case NODE_RECORD:
		fputc('{', to);
		json_elements(n, to);
		fputc('}', to);
		break;
	case NODE_LIST:
		fputc('[', to);
		json_elements(n, to);
		fputc(']', to);
		break;
	case NODE_TEXT:
	case NODE_SENTENCE:
		json_string(n->text, to);
		break;
	case NODE_NUMBER:
		fprintf(to, "%" PRIu64, n->number);
		break;
	case NODE_FLAG:
		fputs(n->number != 0 ? "true" : "false", to);
		break;
	}
}

void
cmd_print_json(const struct cmd_out *o, FILE *to)
{
	if (o->refused)
		return;
	json_node(o->root, to);
	fputc('\n', to);
}
