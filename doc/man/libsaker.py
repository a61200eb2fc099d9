# SPDX-License-Identifier: BSD-3-Clause
"""Prints libsaker(3), made from a template and the comments and functions of <saker/saker.h>.

libsaker.py TEMPLATE lib/saker/saker.h lib/saker/addr.h
"""
import re
import sys

# The comment of a function and its declaration, or the title of a section.
ITEM = re.compile(r'^/\* ---- (?P<title>[^*\n]*) ---- \*/$|'
                  r'^(?P<comment>/\*(?:(?!\*/).)*\*/)\n(?P<function>[a-z][^;{}#/]*\([^;{}#]*\);)',
                  re.MULTILINE | re.DOTALL)


def escaped(text):
    text = text.replace('\\', r'\e').replace('-', r'\-').replace('`', '').replace("'", r'\(aq')
    return r'\&' + text if text[:1] == '.' else text


def paragraphs(comment):
    """Yields the paragraphs of a C comment, each on one line."""
    lines = [re.sub(r'^\s*(/\*+| \*/|\*/| ?\*) ?', '', line) for line in comment.splitlines()]
    text = '\n'.join(line.replace('*/', '').rstrip() for line in lines)
    for paragraph in re.split(r'\n\s*\n|\n(?= *- )', text.strip()):
        yield ' '.join(paragraph.split())


def description(header):
    comment = header[header.index('/*\n'):header.index('*/\n#ifndef')]
    return '\n.PP\n'.join(escaped(p) for p in paragraphs(comment))


def functions(header):
    out, title, found = [], None, 0
    for item in ITEM.finditer(header):
        if item['title']:
            title = item['title']
            continue
        if title:
            out.append(f'.SS {escaped(title)}')
            title = None
        prototype = ' '.join(item['function'].split()).replace('( ', '(')
        out += ['.TP', f'.B {escaped(prototype)}', '\n.IP\n'.join(
            escaped(p) for p in paragraphs(item['comment']))]
        found += 1
    if found == 0:
        return []
    return out


def main():
    template, *headers = [open(path, encoding='ascii').read() for path in sys.argv[1:]]
    listed = [line for header in headers for line in functions(header)]
    print(template.replace('@DESCRIPTION@', description(headers[0]))
          .replace('@FUNCTIONS@', '\n'.join(listed)), end='')


main()
