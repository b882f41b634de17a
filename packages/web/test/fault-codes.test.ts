/** What the app decides by an error: its code or details, never the words of its message. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const folder = join(import.meta.dirname, '../src');

/** Words that are compared, searched or taken apart: of an error, or of the reason that blocks a group. */
const byWords = [
  /\.(?:message|reason)\??\.(?:includes|startsWith|endsWith|match|matchAll|search|indexOf|split)\(/,
  /\.(?:message|reason)\s*[!=]==?(?![=\s]*undefined)/,
  /\.(?:test|exec)\([^)]*\.(?:message|reason)\)/,
  /switch \([^)]*\.(?:message|reason)\)/,
] as const;

const decides = (source: string) => byWords.some((each) => each.test(source));

test('0045: no file of the messenger decides by the words of an error', () => {
  const names = globSync('**/*.{ts,tsx}', { cwd: folder });
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => decides(readFileSync(join(folder, name), 'utf8')))).toEqual([]);
});

test.each([
  "error.message.includes('grant')",
  '/of another (?:account|device)/.test(error.message)',
  "error.message === 'gone'",
  "blocked.reason.includes('restored')",
  'switch (error.message) {',
  "cause?.message?.startsWith('the')",
])('the check finds `%s`', (source) => {
  expect(decides(source)).toBe(true);
});
