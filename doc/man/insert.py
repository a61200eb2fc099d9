# SPDX-License-Identifier: BSD-3-Clause
"""Prints a manual page, made from a template and from what a program prints about itself.

insert.py TEMPLATE PROGRAM

In the template, a line `@ARGUMENTS@` stands for the output of PROGRAM with these arguments: a list
of options with their explanations (--help), or of sections and keys (saker-sim's -k).
"""
import re
import subprocess
import sys

OPTION = re.compile(r' {2,}(-\S.*?)(?: {2,}(.*))?$')
SECTION = re.compile(r'(\[[a-z]+\])$')
KEY = re.compile(r'([a-z0-9-]+) +=(.*?); (.*)$')


def escaped(text):
    text = text.replace('\\', r'\e').replace('-', r'\-').replace("'", r'\(aq')
    return r'\&' + text if text[:1] == '.' else text


def entries(lines):
    """Yields roff lines. A line that is indented further continues an explanation."""
    inside = False
    for line in lines:
        option, section, key = OPTION.match(line), SECTION.match(line), KEY.match(line)
        if option:
            yield from ('.TP', f'.B {escaped(option[1].strip())}')
            inside = True
            if option[2]:
                yield escaped(option[2])
        elif section:
            yield f'.SS {escaped(section[1])}'
        elif key:
            value = f' "{escaped(" = " + key[2].strip())}"' if key[2].strip() else ''
            yield from ('.TP', f'.BR {escaped(key[1])}{value}', escaped(key[3]))
        elif inside and line.startswith('   '):
            yield escaped(line.strip())
        else:
            inside = False


def main():
    template, program = sys.argv[1:3]
    with open(template, encoding='ascii') as page:
        for line in page:
            arguments = re.fullmatch(r'@(.+)@\n', line)
            if not arguments:
                print(line, end='')
                continue
            output = subprocess.run([program] + arguments[1].split(), check=True, text=True,
                                    stdout=subprocess.PIPE).stdout
            made = list(entries(output.splitlines()))
            if not made:
                sys.exit(f'{program} {arguments[1]} prints no list')
            print('\n'.join(made))


main()
