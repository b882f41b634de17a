/** What the modules that are loaded later take of the client: by place, so both lists must agree. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

/** Returns the names of the list in a source file. */
function namesIn(file: string): string[] {
  const text = readFileSync(new URL(`../src/${file}`, import.meta.url), 'utf8');
  const list = /^export const (?:allParts = )?\[\n([^\]]*)\]/m.exec(text)?.[1] ?? '';
  return list.split(/,\s*/).map((name) => name.trim());
}

test('taken.ts names the parts in the order of parts.ts', () => {
  const names = namesIn('parts.ts');
  expect(names).toContain('checkSchema');
  const [first, ...others] = names;
  expect(first).toBe('Type');
  expect(namesIn('taken.ts')).toEqual(['', ...others]);
});
