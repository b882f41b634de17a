/** Writes the results of a run: JSON, a chart, and the page `docs/benchmarks.md`. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Machine, machineLine } from './machine.ts';
import { chart, panelsOf } from './svg.ts';
import { markdownOf, sections, type Table } from './table.ts';

export interface Result {
  readonly machine: Machine;
  readonly tables: readonly Table[];
}

export function writeJson(file: string, result: Result): void {
  writeFileSync(file, `${JSON.stringify(result, undefined, 2)}\n`);
}

/** @throws Error if no section was measured that compares with the floor */
export function writeChart(file: string, { machine, tables }: Result): void {
  const panels = panelsOf(tables);
  if (panels.length === 0) throw new Error('a chart needs the sections send or latency');
  writeFileSync(file, chart(panels, machineLine(machine)));
}

/**
 * Writes the page, and its chart if sections of it were measured; `docs` is their folder. Sections
 * that were not measured stay as they were, each with the machine and the commit of its run.
 */
export function writePage(docs: string, result: Result): void {
  const path = join(docs, 'benchmarks.md');
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  writeFileSync(path, pageOf(result, before));
  if (panelsOf(result.tables).length > 0) writeChart(join(docs, 'benchmarks.svg'), result);
}

/** Makes the page of a run; `before` is the page of earlier ones. */
export function pageOf({ machine, tables }: Result, before: string): string {
  const blocks = blocksOf(before);
  for (const [section, own] of Map.groupBy(tables, (table) => table.section)) {
    const texts = own.map(markdownOf).join('\n');
    blocks.set(section, `${texts}\n_${machineLine(machine)}._\n`);
  }
  const kept = sections.filter((section) => blocks.has(section));
  return [head, ...kept.map((section) => `${mark(section)}\n\n${blocks.get(section)}`)].join('\n');
}

/** What begins a section of the page, for the next run to find. */
const mark = (section: string) => `<!-- section ${section} -->`;

/** Returns the text of each section of a page. */
function blocksOf(page: string): Map<string, string> {
  const [, ...parts] = page.split(/^<!-- section (\w+) -->\n\n/m);
  return new Map(
    parts.flatMap((name, at) =>
      at % 2 === 0 ? [[name, `${(parts[at + 1] ?? '').trimEnd()}\n`] as const] : [],
    ),
  );
}

const head = `# Benchmarks

What \`npm run bench -- --write\` measured last, each section with its machine, day and commit. How each figure is measured
and how to read it is in [bench/README.md](../bench/README.md).

The **floor** is a server of some 140 lines that does only what no relay can leave out: WebSocket over the same
TLS, parse, canonical form, one signature, one durable commit for all messages that wait, with the same rows, the answer
and a notice. Relay and floor run in alternation with the same messages. **The ratios are the result**: absolute figures
are of one machine on one day, with whatever else ran on it, the load generator included.

![Ratios to the floor](benchmarks.svg)
`;
