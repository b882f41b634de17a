import { expect, test } from 'vitest';
import { terminalColumns, terminalJson, terminalLine, terminalText } from '../src/terminal.ts';

/** Everything a terminal may obey, and what turns the direction of writing. */
const commands = [
  ...[0x00, 0x07, 0x08, 0x09, 0x0b, 0x0d, 0x1b, 0x1f, 0x7f, 0x80, 0x9b, 0x9f],
  ...[0x061c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069],
].map((code) => String.fromCharCode(code));

test.each(commands)('a line with %j has a space there instead', (command) => {
  expect(terminalLine(`a${command}b`)).toBe('a b');
});

test('other characters stay, of any language', () => {
  const line = 'Grüße 你好 مرحبا 👩‍👩‍👧 ~ ¡';
  expect(terminalLine(line)).toBe(line);
  expect(terminalText(line)).toBe(line);
});

test('further lines of a text are indented, however they are broken', () => {
  expect(terminalText('a\nb\r\nc\rd\u2028e\u2029f')).toBe('a\n    b\n    c\n    d\n    e\n    f');
  expect(terminalText('a\u001b[2Jb')).toBe('a [2Jb');
});

test.each([...commands, '\n'])(
  'JSON with %j is one harmless line that says the same',
  (command) => {
    const value = { [`a${command}`]: `b${command}c` };
    const line = terminalJson(value);
    expect(terminalLine(line)).toBe(line);
    expect(line).not.toContain('\n');
    expect(JSON.parse(line)).toEqual(value);
  },
);

test('columns are as wide as their widest cell; rows may be shorter', () => {
  const rows = [['a', 'bb', 'c'], ['aaa', 'b', 'c'], ['a']];
  expect(terminalColumns(rows)).toEqual(['a    bb  c', 'aaa  b   c', 'a']);
  expect(terminalColumns([])).toEqual([]);
});
