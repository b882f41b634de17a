import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { limits } from '../src/index.ts';

const docs = new URL('../../../docs/protocol/', import.meta.url);
const source = readFileSync(new URL('../src/limits.ts', import.meta.url), 'utf8');

/** Every limit with the places that the comment above it names, such as `01 §8`. */
const entries = [...source.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+(\w+): ([\d_]+),/g)].map(
  ([, comment = '', name = '', value = '']) => ({
    name,
    value: Number(value.replaceAll('_', '')),
    places: placesIn(comment),
  }),
);

function placesIn(comment: string): { chapter: string; section: string }[] {
  let chapter = '';
  return [...comment.matchAll(/\b(0\d)(?= §)|§([A-D]?\d+(?:\.\d+)*)/g)].flatMap(
    ([, number, section]) => {
      if (number !== undefined) chapter = number;
      return section === undefined ? [] : [{ chapter, section }];
    },
  );
}

/** The text of a section with its subsections. */
function sectionText(chapter: string, section: string): string {
  const file = readdirSync(docs).find((name) => name.startsWith(`${chapter}-`)) ?? '';
  const lines = readFileSync(new URL(file, docs), 'utf8').split('\n');
  const title = new RegExp(`^(#+) ${section.replaceAll('.', '\\.')}\\.? `);
  const start = lines.findIndex((line) => title.test(line));
  if (start < 0) throw new Error(`chapter ${chapter} has no section ${section}`);
  const level = title.exec(lines[start] as string)?.[1]?.length ?? 0;
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  return rest.slice(0, end < 0 ? undefined : end).join('\n');
}

describe('limits', () => {
  test('every limit names its place', () => {
    expect(entries.map(({ name }) => name)).toEqual(Object.keys(limits));
    for (const { name, places } of entries) expect([name, places.length]).not.toEqual([name, 0]);
  });

  test.each(entries)('$name is $value in the section it names', ({ name, value, places }) => {
    expect(limits[name as keyof typeof limits]).toBe(value);
    const shown = value.toLocaleString('en-US');
    const number = new RegExp(`(?<![\\d,])(?<!\\d\\.)(?:${shown}|${value})(?![\\d,]*\\d)`);
    for (const { chapter, section } of places) {
      expect(number.test(sectionText(chapter, section)), `${chapter} §${section}`).toBe(true);
    }
  });
});
