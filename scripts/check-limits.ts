/**
 * Checks `docs/limits.md`, which has every limit of a relay: each limit of the configuration has one
 * row, with the default and unit of the code, whose it is, and what happens above it. That the tests
 * of the rows exist is checked by `check-docs.ts`. `--write` puts defaults and units into the rows.
 * The last section has bounds that are constants of the code; their values are compared too.
 *
 * @example
 * npx node scripts/check-limits.ts --write
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { RelayLimits } from '../packages/relay/src/limits.ts';

/** A row of the table. */
interface Row {
  readonly name: string;
  readonly cells: readonly string[];
}

/** What a limit may belong to. */
const owners: ReadonlySet<string> = new Set(
  'frame message record call connection address account device group relay process deployment'.split(
    ' ',
  ),
);
interface LimitSchema {
  readonly default: number;
  readonly description: string;
}

/** Every limit with its default and unit, in the order of the code. */
const known = Object.entries(RelayLimits.properties).map(([name, schema]) => {
  const { default: value, description } = schema as unknown as LimitSchema;
  return { name, value: value.toLocaleString('en-US'), unit: unitOf(description) };
});

/** Reads a unit from the description, which begins with it. */
function unitOf(description: string): string {
  const [first = ''] = description.split(' ', 1);
  const units = ['Seconds', 'Milliseconds', 'Bytes', 'Characters', 'Units'];
  const unit = units.includes(first) ? first.toLowerCase() : 'count';
  if (description.includes(' in a second')) return `${unit} / second`;
  if (description.includes(' in a minute')) return `${unit} / minute`;
  return description.includes(' in a day') ? `${unit} / day` : unit;
}

/** Where the table of constants begins. */
const fixedTitle = '\n## Fixed in the code\n';
const source = join(dirname(import.meta.dirname), 'packages/relay/src');
/** Names of constants that are bounds; storage engines and flags of commands have bounds of their own. */
const bound = /^(?:max|most)[A-Z]|(?:AtOnce|PerTurn|InARow|OfPage|OfRun|Kept)$/;
/** Files of which each constant that is a number is a bound, whatever its name: those of the write path and of its start. */
const whole =
  /^storage\/sqlite\/(?:checkpoints|damage|open-writer|readers|storage|wal-flush|writer)\.ts$/;

/** A constant with its file and value, as the page has them. */
type Constant = readonly [name: string, value: string, file: string];

function constantsOf(file: string): Constant[] {
  const text = readFileSync(join(source, file), 'utf8');
  return [...text.matchAll(/^(?:export )?const (\w+) = ([\d_]+(?: \* [\d_]+)*);/gm)].map(
    ([, name = '', product = '']) => {
      const factors = product.split(' * ').map((factor) => Number(factor.replaceAll('_', '')));
      const value = factors.reduce((left, right) => left * right);
      return [name, value.toLocaleString('en-US'), file];
    },
  );
}

/** Finds constants of the last section that are missing, gone, or not as the code is. */
export function checkFixed(page: string): string[] {
  const section = page.split(fixedTitle)[1] ?? '';
  const shown = [...section.matchAll(/^\| `(\w+)` *\| ([\d,]+) *\| `([^`]+)` *\| \S/gm)];
  const rows = new Set(shown.map(([, ...cells]) => cells.slice(0, 3).join(' ')));
  const files = globSync('**/*.ts', { cwd: source });
  const constants = files.flatMap((file) => constantsOf(file));
  const current = new Set(constants.map((constant) => constant.join(' ')));
  const isFixed = ([name, , file]: Constant) =>
    whole.test(file) || (bound.test(name) && !/^(storage|commands)\//.test(file));
  const missing = constants.filter((one) => isFixed(one) && !rows.has(one.join(' ')));
  const gone = [...rows].filter((row) => !current.has(row));
  return [
    ...missing.map(([name, value, file]) => `no row: ${name} is ${value} in ${file}`),
    ...gone.map((row) => `not in the code: ${row}`),
  ];
}

function rowsOf(page: string): Row[] {
  const [limits = ''] = page.split(fixedTitle);
  return [...limits.matchAll(/^\| `(\w+)` *\|(.*)\|$/gm)].map(([, name = '', rest = '']) => ({
    name,
    cells: rest.split('|').map((cell) => cell.trim()),
  }));
}

/** Finds rows that are missing, repeated, or not as the code is. */
export function checkLimits(page: string): string[] {
  const rows = rowsOf(page);
  const faults = known.flatMap(({ name, value, unit }) => {
    const found = rows.filter((row) => row.name === name);
    if (found.length !== 1) return [`${name} has ${found.length} rows`];
    const [shown, shownUnit, whose = '', above = ''] = found[0]?.cells ?? [];
    const isCurrent = shown === value && shownUnit === unit;
    return [
      ...(isCurrent
        ? []
        : [`${name} is ${value} ${unit}: npx node scripts/check-limits.ts --write`]),
      ...whose
        .split(', ')
        .flatMap((one) => (owners.has(one) ? [] : [`${name}: whose is "${one}"?`])),
      ...(above === '' ? [`${name}: what happens above it?`] : []),
    ];
  });
  const names = new Set(known.map(({ name }) => name));
  const others = rows.filter((row) => !names.has(row.name));
  return [...faults, ...others.map(({ name }) => `${name} is no limit`)];
}

/** Puts defaults and units of the code into the rows. */
export function writtenLimits(page: string): string {
  // Constants of the last section may have the name of a limit.
  const [limits = '', ...constants] = page.split(fixedTitle);
  const written = limits.replaceAll(/^\| `(\w+)` *\|[^|]*\|[^|]*\|/gm, (row, name: string) => {
    const limit = known.find((one) => one.name === name);
    return limit === undefined ? row : `| \`${name}\` | ${limit.value} | ${limit.unit} |`;
  });
  return [written, ...constants].join(fixedTitle);
}

if (import.meta.main) {
  const path = join(dirname(import.meta.dirname), 'docs/limits.md');
  if (process.argv.includes('--write')) {
    writeFileSync(path, writtenLimits(readFileSync(path, 'utf8')));
  }
  const page = readFileSync(path, 'utf8');
  const faults = [...checkLimits(page), ...checkFixed(page)];
  for (const fault of faults) process.stdout.write(`docs/limits.md: ${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
}
