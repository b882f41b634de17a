/** Draws results as a plain chart: a bar for each server and setting, by its ratio to the floor. */
import type { Table } from './table.ts';

/** One bar. */
export interface Bar {
  readonly label: string;
  readonly ratio: number;
  /** The figure that the ratio is of. */
  readonly note: string;
}

/** Bars of one figure. */
export interface Panel {
  readonly title: string;
  readonly bars: readonly Bar[];
}

const layout = {
  width: 760,
  left: 216,
  right: 130,
  bar: 18,
  gap: 8,
  title: 34,
  margin: 16,
} as const;

const escaped = (text: string) =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);

/** Returns what a chart shows of the tables: throughput, CPU time and latency next to the floor. */
export function panelsOf(tables: readonly Table[]): Panel[] {
  const bars = (
    section: Table['section'],
    key: string,
    noteOf: (value: number) => string,
  ): Bar[] => {
    const rows = tables.filter((table) => table.section === section).flatMap(({ rows }) => rows);
    return rows.flatMap((row) => {
      const [ratio, value] = [row[`${key}Ratio`], row[key]];
      if (typeof ratio !== 'number' || typeof value !== 'number') return [];
      const load = row.connections === undefined ? '' : `${row.connections} × ${row.window}, `;
      return [{ label: `${load}${row.server}`, ratio, note: noteOf(value) }];
    });
  };
  const panels = [
    {
      title: 'Messages a second (connections × requests in flight): longer is better',
      bars: bars('send', 'perSecond', (value) => `${Math.round(value).toLocaleString('en')}/s`),
    },
    {
      title: 'CPU time of a message: shorter is better',
      bars: bars('send', 'cpu', (value) => `${(value * 100).toFixed(0)} µs`),
    },
    {
      title: 'Median latency at 200 messages a second: shorter is better',
      bars: bars('latency', 'p50', (value) => `${value.toFixed(1)} ms`),
    },
  ];
  return panels.filter(({ bars: { length } }) => length > 0);
}

/**
 * Draws panels under each other. A dashed line marks the floor (1.0). Text has the colour of the page's
 * own text as far as the reader's colour scheme tells, so that it is legible on light and on dark.
 *
 * @param caption machine and day
 */
export function chart(panels: readonly Panel[], caption: string): string {
  const { width, left, right, bar, gap, title, margin } = layout;
  const parts: string[] = [];
  let y = margin;
  for (const panel of panels) {
    const highest = Math.max(1, ...panel.bars.map(({ ratio }) => ratio));
    const scale = (width - left - right) / highest;
    const floor = left + scale;
    const top = y + title;
    const bottom = top + panel.bars.length * (bar + gap);
    parts.push(text(margin, y + 18, panel.title, 'class="title"'));
    for (const [index, { label, ratio, note }] of panel.bars.entries()) {
      const at = top + index * (bar + gap);
      const length = Math.max(1, ratio * scale);
      const kind = /\bcommit /.test(label) ? 'other' : 'relay';
      parts.push(text(left - 8, at + 13, label, 'text-anchor="end"'));
      parts.push(rectangle({ x: left, y: at, width: length, height: bar }, kind));
      parts.push(text(left + length + 6, at + 13, `${ratio.toFixed(2)}  (${note})`));
    }
    const x = floor.toFixed(1);
    parts.push(`<line class="floor" x1="${x}" y1="${top - 4}" x2="${x}" y2="${bottom - 2}"/>`);
    parts.push(text(floor, top - 6, 'floor', 'text-anchor="middle" class="small"'));
    y = bottom + margin;
  }
  parts.push(text(margin, y + 12, caption, 'class="small"'));
  const height = y + 12 + margin;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    '<title>Posthouse next to a server that does only what cannot be left out</title>',
    `<style>${style}</style>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

const style = [
  'text{font:13px system-ui,sans-serif;fill:#1f2328}',
  '.title{font-weight:600}',
  '.small{font-size:11px}',
  '.relay{fill:#2f6feb}',
  '.other{fill:#8c959f}',
  '.floor{stroke:#1f2328;stroke-dasharray:4 3}',
  '@media (prefers-color-scheme:dark){text{fill:#e6edf3}.floor{stroke:#e6edf3}}',
].join('');

function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escaped(content)}</text>`;
}

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function rectangle({ x, y, width, height }: Rectangle, kind: string): string {
  const size = `width="${width.toFixed(1)}" height="${height}"`;
  return `<rect class="${kind}" x="${x}" y="${y}" ${size} rx="2"/>`;
}
