/** Writes the results of a run: JSON, a chart, and the page `docs/benchmarks.md`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Machine, machineLine } from './machine.ts';
import { chart, panelsOf } from './svg.ts';
import { markdownOf, type Table } from './table.ts';

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

/** Writes the page and its chart; `docs` is their folder. */
export function writePage(docs: string, result: Result): void {
  writeChart(join(docs, 'benchmarks.svg'), result);
  writeFileSync(join(docs, 'benchmarks.md'), pageOf(result));
}

function pageOf({ machine, tables }: Result): string {
  return [
    '# Benchmarks',
    '',
    `The last run of \`npm run bench -- --write\`: ${machineLine(machine)}. How each figure is measured and how`,
    'to read it is in [bench/README.md](../bench/README.md).',
    '',
    'The **floor** is a server of about a hundred lines that does only what no relay can leave out: WebSocket over the same',
    'TLS, parse, canonical form, one signature, one durable commit for all messages that wait, with the same rows, the answer',
    'and a notice. Relay and floor run in alternation with the same messages. **The ratios are the result**: absolute figures',
    'are of this machine on this day, with whatever else ran on it, the load generator included.',
    '',
    '![Ratios to the floor](benchmarks.svg)',
    '',
    ...tables.map(markdownOf),
  ].join('\n');
}
