/** The tables that a bench makes: as text, as Markdown, and in JSON as they are. */

/** What `npm run bench` measures, in its order; `profile` only if asked. */
export const sections = [
  'machine',
  'send',
  'latency',
  'storage',
  'calls',
  'pages',
  'start',
  'memory',
  'postgres',
  'log',
] as const;
export type Section = (typeof sections)[number] | 'profile';

export type Cell = string | number | undefined;

export interface Column {
  readonly key: string;
  readonly label: string;
  /** Decimal places; for texts and counts none. */
  readonly digits?: number;
  /** Whether numbers are ratios to the floor. */
  readonly isRatio?: boolean;
}

export interface Table {
  /** The section of the bench. */
  readonly section: Section;
  readonly title: string;
  readonly columns: readonly Column[];
  /** Cells by key of their column. */
  readonly rows: readonly Readonly<Record<string, Cell>>[];
  /** How to read it, and what is missing and why. */
  readonly notes?: readonly string[];
}

/** Returns the median of numbers, of an even number of them the mean of the two in the middle; of none, 0. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const middle = sorted.slice(Math.ceil(half) - 1, Math.floor(half) + 1);
  return middle.reduce((sum, value) => sum + value, 0) / Math.max(1, middle.length);
}

function format(value: Cell, { digits = 0, isRatio = false }: Column): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  if (isRatio) return `×${value.toFixed(2)}`;
  const text = value.toFixed(digits);
  return digits > 0 ? text : text.replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Whether a column is aligned to the left. */
const isText = ({ rows }: Table, { key }: Column) =>
  rows.some((row) => typeof row[key] === 'string');

function cellsOf(table: Table): string[][] {
  const { columns, rows } = table;
  const head = columns.map(({ label }) => label);
  return [head, ...rows.map((row) => columns.map((column) => format(row[column.key], column)))];
}

/** Pads cells to the width of their columns. */
function padded(table: Table): string[][] {
  const cells = cellsOf(table);
  const widths = table.columns.map((_, at) => {
    return Math.max(...cells.map((line) => line[at]?.length ?? 0));
  });
  return cells.map((line) =>
    line.map((cell, at) => {
      const column = table.columns[at] as Column;
      const width = widths[at] as number;
      return isText(table, column) ? cell.padEnd(width) : cell.padStart(width);
    }),
  );
}

/** Formats a table for a terminal. */
export function textOf(table: Table): string {
  const lines = padded(table).map((line) => line.join('  ').trimEnd());
  return [table.title, ...lines, ...(table.notes ?? []), ''].join('\n');
}

/** Formats a table as Markdown. */
export function markdownOf(table: Table): string {
  const [head = [], ...rows] = padded(table);
  const rule = head.map((label, at) => {
    const dashes = '-'.repeat(label.length);
    return isText(table, table.columns[at] as Column) ? dashes : `${dashes.slice(1)}:`;
  });
  const lines = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  const notes = table.notes === undefined ? [] : ['', table.notes.join(' ')];
  return [`## ${table.title}`, '', ...lines, ...notes, ''].join('\n');
}
