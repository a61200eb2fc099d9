# SPDX-License-Identifier: BSD-3-Clause
"""Prints saker.ini(5), made from the comments and keys of the sample configuration.

saker_ini.py config/saker.ini

A block of comments that a section follows describes the section. A block that keys follow describes
these keys. The first block, before any section, describes the file.
"""
import re
import sys

HEAD = r'''.\" SPDX-License-Identifier: BSD-3-Clause
.TH SAKER.INI 5 "" "Saker" "File formats"
.SH NAME
saker.ini \- configuration of saker
.SH DESCRIPTION'''
TAIL = r'''.SH FILES
.TP
.I /etc/saker/saker.ini
The file that the systemd unit passes to saker.
.TP
.I /usr/share/doc/saker
Pages on operations, security, memory and virtual machines.
.SH SEE ALSO
.BR saker (8),
.BR sakerctl (8),
.BR saker-verbs (7)'''

SECTION = re.compile(r';? ?(\[[a-z]+(?: \d+)?\])$')
KEY = re.compile(r'(; ?)([a-z0-9-]+) = (.*)$')


def escaped(text):
    text = text.replace('\\', r'\e').replace('-', r'\-').replace('`', '').replace("'", r'\(aq')
    return r'\&' + text if text[:1] == '.' else text


def main():
    print(HEAD)
    block, keys, started = [], [], False

    def end_keys():
        """Prints the keys that stand together, and the block in front of them."""
        for n, (mark, name, value) in enumerate(keys):
            print('.TP' if n == 0 else '.TQ')
            default = '' if mark == '; ' else ' = ' + value
            print(f'.BR {escaped(name)}' + (f' "{escaped(default)}"' if default else ''))
        if keys:
            print(escaped(' '.join(block)) or 'As described above.')
            block.clear()
        keys.clear()

    with open(sys.argv[1], encoding='ascii') as sample:
        lines = [line.rstrip('\n') for line in sample][1:] # without the licence
    for line in lines:
        section, key = SECTION.match(line), KEY.match(line)
        if section:
            end_keys()
            if not started:
                print('.SH SECTIONS')
            started = True
            if not section[1].endswith(' 1]'): # a second example of the section before
                print(f'.SS {escaped(section[1]).replace(" 0]", " N]")}')
            if block:
                print(escaped(' '.join(block)))
            block.clear()
        elif key:
            keys.append(key.groups())
        else:
            end_keys()
            text = line.lstrip(';').strip()
            if text:
                block.append(text)
            elif block and not started:
                print('.PP\n' + escaped(' '.join(block)))
                block.clear()
    end_keys()
    print(TAIL)


main()
