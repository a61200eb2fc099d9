/* SPDX-License-Identifier: BSD-3-Clause */
/* Files: each form of a line, and the sentence for each line that is not one. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../../lib/conf/conf.h"

static char seen[1024], why[CONF_SENTENCE];

static int
on_section(void *arg, const struct conf_place *at, char sentence[CONF_SENTENCE])
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof(seen) - n, "%u[%s]", at->line, at->section);
	if (strcmp(at->section, "no") != 0)
		return 0;
	strcpy(sentence, "no such section");
	return -ENOENT;
}

static int
on_entry(void *arg, const struct conf_place *at, const char *key, const char *value,
	char sentence[CONF_SENTENCE])
{
	size_t n = strlen(seen);

	cr_assert_str_eq(at->file, "f");
	snprintf(seen + n, sizeof(seen) - n, "%u(%s|%s)", at->line, key, value);
	if (strcmp(value, "no") != 0)
		return 0;
	snprintf(sentence, CONF_SENTENCE, "[%s] %s = no", at->section, key);
	return -EINVAL;
}

static const struct conf_reader reader = {on_section, on_entry};

static int
read_bytes(const char *text, size_t len)
{
	static char copy[4096];

	cr_assert_lt(len, sizeof(copy));
	memcpy(copy, text, len);
	seen[0] = why[0] = '\0';
	return conf_read_text(copy, len, "f", &reader, NULL, why, sizeof(why));
}

Test(conf_read, sections_keys_and_comments)
{
	cr_assert_eq(read_bytes("", 0), 0);
	cr_assert_str_eq(seen, "");
	cr_assert_eq(read_bytes("; a\n# b = 1\n\n[one] ; c\n a  =  x y ; d\n\tb=#2\r\n"
				"[ two 3 ]\na = x=y\n[empty]",
			     strlen("; a\n# b = 1\n\n[one] ; c\n a  =  x y ; d\n\tb=#2\r\n"
				    "[ two 3 ]\na = x=y\n[empty]")),
		0, "%s", why);
	cr_assert_str_eq(seen, "4[one]5(a|x y)6(b|#2)7[two 3]8(a|x=y)9[empty]");
}

Test(conf_read, each_wrong_line_is_named)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"[a]\npsp gcm256\n",
			"f:2: the line 'psp gcm256' is neither [section] nor key = value"},
		{"[a]\n = 1\n", "f:2: the line '= 1' is neither [section] nor key = value"},
		{"[a\nb = 1\n", "f:1: the line '[a' is not [section]"},
		{"[a] b = 1\n", "f:1: the line '[a] b = 1' is not [section]"},
		{"\nb = 1\n", "f:2: the key 'b' stands before the first [section]"},
		{"[a]\nb =\n", "f:2: [a] b has no value"},
		{"[a]\nb = ; 1\n", "f:2: [a] b has no value"},
		{"[a]\nb = 1\nb = 1\n", "f:3: [a] b stands in line 2 already"},
		{"[a]\n[b]\n[a]\n", "f:3: section [a] stands in line 1 already"},
		{"[a]\nb = 1\n[no]\nc = 1\n", "f:3: no such section"},
		{"[a]\nb = 1\nc = no\nd = 1\n", "f:3: [a] c = no"},
		{"[a]\n\033[2J\n", "f:2: the line '?[2J' is neither [section] nor key = value"},
	};
	char line[CONF_LINE + 8] = "[a]\nb = ";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_lt(read_bytes(rows[i].text, strlen(rows[i].text)), 0, "%s", rows[i].text);
		cr_assert_str_eq(why, rows[i].why, "%s", why);
	}
	cr_assert_lt(read_bytes("[a]\nb = \0 1\n", 12), 0);
	cr_assert_str_eq(why, "f:2: the line contains a zero byte");
	memset(line + 8, 'x', CONF_LINE - 4);
	cr_assert_eq(read_bytes(line, CONF_LINE + 3), 0, "1023 bytes");
	cr_assert_lt(read_bytes(line, CONF_LINE + 4), 0, "1024 bytes");
	cr_assert(strstr(why, "...' is longer than 1023 bytes") != NULL, "%s", why);
}

Test(conf_read, a_file_that_cannot_be_read_is_named)
{
	char path[] = "/tmp/saker-conf-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(conf_read("/nonexistent", &reader, NULL, why, sizeof(why)), -ENOENT);
	cr_assert_str_eq(why, "the file /nonexistent cannot be read: No such file or directory");
	cr_assert_eq(conf_read("/tmp", &reader, NULL, why, sizeof(why)), -EISDIR);
	cr_assert_str_eq(why, "the file /tmp cannot be read: Is a directory");
	cr_assert_eq(ftruncate(fd, CONF_FILE_MAX + 1), 0);
	cr_assert_eq(conf_read(path, &reader, NULL, why, sizeof(why)), -EFBIG);
	cr_assert(strstr(why, "has more than 1048576 bytes") != NULL);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(conf_read(path, &reader, NULL, why, sizeof(why)), 0);
	close(fd);
	unlink(path);
}
