import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { loadTarget, type PlainSocket, TestContext } from '@posthouse/conformance';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type MeasuredServer, startFloor, startRelay } from './measured-process.ts';
import { count, counts, flag, number, parseOptions, text, word, words } from './options.ts';
import { type Frame, Population } from './population.ts';
import { selfTimes } from './profile.ts';
import { pageOf, type Result } from './report.ts';
import { chart, panelsOf } from './svg.ts';
import { markdownOf, median, type Table, textOf } from './table.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Sends the frames of each connection; returns what arrived at each, without times. */
async function exchange(
  sockets: readonly PlainSocket[],
  frames: readonly (readonly Frame[])[],
): Promise<unknown[][]> {
  const arrived = sockets.map((): unknown[] => []);
  for (const [at, own] of frames.entries()) {
    for (const frame of own) {
      // Each message is answered, and its recipient notified, before the next one is sent.
      const [sender, recipient] = [sockets[at], sockets[1 - at]] as [PlainSocket, PlainSocket];
      sender.send(frame as string);
      const answer = await sender.receive((text) => text.includes('"id"'));
      const notice = await recipient.receive((text) => text.includes('"method"'));
      arrived[at]?.push(withoutTime(answer));
      arrived[1 - at]?.push(withoutTime(notice));
    }
  }
  return arrived;
}

function withoutTime(text: string): unknown {
  return JSON.parse(text, (name, value) => (name === 'accepted_at' ? 'a time' : value));
}

/** Reads what a server stored of messages, without times and digests of requests. */
function stored({ database: path }: MeasuredServer): Record<string, unknown[]> {
  using database = new DatabaseSync(path, { readOnly: true });
  const rows = (sql: string) => database.prepare(sql).all();
  return {
    envelopes: rows('SELECT envelope_id, envelope FROM message_envelopes ORDER BY 1'),
    certificates: rows(
      'SELECT certificate_id, device_id, certificate FROM message_certificates ORDER BY 1',
    ),
    heads: rows('SELECT * FROM timeline_heads ORDER BY 1'),
    records: rows(`SELECT account, sequence, envelope_id, certificate_id, bytes, visible_to
      FROM timeline_records ORDER BY 1, 2`),
    boxes: rows('SELECT * FROM timeline_boxes ORDER BY 1, 2, 3'),
    results: rows('SELECT sender, message_id, status FROM sent_results ORDER BY 1, 2'),
  };
}

const command = new URL('bench.ts', import.meta.url).pathname;

describe('npm run bench', () => {
  test.each([false, true])(
    '04 §12: the floor answers, notifies and stores as the relay does, sender boxes: %s',
    async (withSenderBoxes) => {
      await using parts = new AsyncDisposableStack();
      const relay = await startRelay(parts, join(folder, 'relay'), { name: 'relay' });
      const floor = await startFloor(parts, join(folder, 'floor'), join(folder, 'relay'));
      const population = await Population.make(2, { withSenderBoxes });
      const { ca, relay: address } = relay.target;
      const { base = '', registry = '' } = address ?? {};
      const target = await loadTarget({ relay: base, registry, ca });
      const context = parts.use(await TestContext.open(target, 'wss'));
      const atRelay = await population.connect(context, relay.target.sockets, { register: true });
      const [socket = ''] = floor.target.sockets;
      const atFloor = await population.greet(socket, readFileSync(ca, 'utf8'));
      for (const each of [...atRelay, ...atFloor]) parts.adopt(each, () => each[Symbol.dispose]());
      const frames = population.messages(2, 4);
      // A sender with boxes of its own is notified as well, of which device is not compared here.
      const expected = await exchange(atRelay, frames);
      const found = await exchange(atFloor, frames);
      if (!withSenderBoxes) expect(found).toEqual(expected);
      expect(stored(floor)).toEqual(stored(relay));
      expect(stored(floor).results).toHaveLength(4);
    },
  );

  test('ends with its usage, without a stack, for a wrong option', () => {
    const run = [command, '--pairs', 'x'];
    const { status, stdout, stderr } = spawnSync(process.execPath, run, { encoding: 'utf8' });
    expect({ status, stdout, lines: stderr.split('\n') }).toEqual({
      status: 2,
      stdout: '',
      lines: [
        '--pairs x: expected N',
        expect.stringMatching(/^usage: npm run bench -- \[--only /),
        '',
      ],
    });
  });

  test('a run of a few messages makes every column of its tables', () => {
    const file = join(folder, 'result.json');
    const options = ['--only', 'send,latency', '--connections', '2', '--pairs', '1'];
    const run = ['--seconds', '0.01', '--json', file];
    const output = execFileSync(process.execPath, [command, ...options, ...run], {
      encoding: 'utf8',
    });
    const { machine, tables } = JSON.parse(readFileSync(file, 'utf8')) as Result;
    expect(machine.cores).toBeGreaterThan(0);
    expect(tables.map(({ section }) => section)).toEqual(['send', 'latency']);
    const [sent, paced] = tables as [Table, Table];
    expect(sent.rows.map(({ server, window }) => [server, window])).toEqual([
      ['floor', 1],
      ['relay', 1],
      ['floor', 16],
      ['relay', 16],
    ]);
    for (const { columns, rows } of [sent, paced]) {
      for (const { key } of columns.filter((column) => column.digits !== undefined)) {
        for (const row of rows) expect(row[key]).toBeGreaterThan(0);
      }
      for (const { key } of columns.filter((column) => column.isRatio)) {
        expect(rows.find(({ server }) => server === 'relay')?.[key]).toBeGreaterThan(0);
      }
    }
    expect(output).toContain(textOf(sent));
  });
});

describe('options', () => {
  const options = {
    pairs: count(2),
    seconds: number(1),
    sizes: counts([1, 20]),
    skip: word(['nothing', 'build']),
    only: words(['send', 'memory']),
    json: text('FILE'),
    large: flag,
  };

  test('each has its value, or what is usual', () => {
    expect(parseOptions(options, [])).toEqual({
      pairs: 2,
      seconds: 1,
      sizes: [1, 20],
      skip: 'nothing',
      only: ['send', 'memory'],
      json: undefined,
      large: false,
    });
    const given = '--pairs 1 --seconds 0.5 --sizes 3 --skip build --only memory --json a --large';
    expect(parseOptions(options, given.split(' '))).toEqual({
      pairs: 1,
      seconds: 0.5,
      sizes: [3],
      skip: 'build',
      only: ['memory'],
      json: 'a',
      large: true,
    });
  });

  test('a part of the words may be usual', () => {
    const only = words(['send', 'log'], ['send']);
    expect(parseOptions({ only }, [])).toEqual({ only: ['send'] });
    expect(parseOptions({ only }, ['--only', 'log'])).toEqual({ only: ['log'] });
  });

  test.each([
    [['--pairs', '0'], '--pairs 0: expected N'],
    [['--pairs', '1.5'], '--pairs 1.5: expected N'],
    [['--seconds', ''], '--seconds : expected N'],
    [['--seconds=-1'], '--seconds -1: expected N'],
    [['--sizes', '1,x'], '--sizes 1,x: expected N,N'],
    [['--skip', 'start'], '--skip start: expected nothing|build'],
    [['--only', 'send,parse'], '--only send,parse: expected send,memory'],
    [['--json', ''], '--json : expected FILE'],
    [['--paris', '1'], "Unknown option '--paris'"],
    [['1'], 'Unexpected argument'],
  ])('%j are refused', (args, why) => {
    expect(() => parseOptions(options, args)).toThrow(why);
  });
});

const table: Table = {
  section: 'send',
  title: 'Sending',
  columns: [
    { key: 'server', label: 'server' },
    { key: 'perSecond', label: 'per second' },
    { key: 'perSecondRatio', label: '/floor', isRatio: true },
  ],
  rows: [
    { server: 'floor', connections: 20, window: 1, perSecond: 5_000 },
    { server: 'relay <new>', connections: 20, window: 1, perSecond: 4_000, perSecondRatio: 0.8 },
  ],
  notes: ['A note.'],
};

describe('results', () => {
  test('a table is the same as text and as Markdown', () => {
    expect(textOf(table).split('\n')).toEqual([
      'Sending',
      'server       per second  /floor',
      'floor             5,000',
      'relay <new>       4,000   ×0.80',
      'A note.',
      '',
    ]);
    expect(markdownOf(table).split('\n')).toEqual([
      '## Sending',
      '',
      '| server      | per second | /floor |',
      '| ----------- | ---------: | -----: |',
      '| floor       |      5,000 |        |',
      '| relay <new> |      4,000 |  ×0.80 |',
      '',
      'A note.',
      '',
    ]);
  });

  test('sections of the page that were not measured stay, with the machine of their run', () => {
    const machine = { cores: 2, memory: '4 GiB', disk: 'ext4', node: 'v1', load: 0 };
    const memory: Table = { ...table, section: 'memory', title: 'Memory', notes: [] };
    const first = { machine: { ...machine, date: 'Monday', commit: 'a' }, tables: [memory, table] };
    const page = pageOf(first, '');
    expect(page.match(/^## .+|Monday|Tuesday/gm)).toEqual([
      ...['## Sending', 'Monday', '## Memory', 'Monday'],
    ]);
    const rows = [{ server: 'floor', perSecond: 1 }];
    const tables = [
      { ...table, rows },
      { ...table, title: 'More', rows },
    ];
    const second = { machine: { ...machine, date: 'Tuesday', commit: 'b' }, tables };
    const next = pageOf(second, page);
    expect(next.match(/^## .+|Monday|Tuesday/gm)).toEqual([
      ...['## Sending', '## More', 'Tuesday', '## Memory', 'Monday'],
    ]);
    // What was measured anew is there once.
    expect([page, next].map((text) => text.match(/4,000/g)?.length)).toEqual([2, 1]);
    expect(pageOf({ ...second, tables: [] }, next)).toBe(next);
    expect(pageOf(first, pageOf(second, ''))).toBe(page);
  });

  test('a median is the middle number, or the mean of the two in the middle', () => {
    expect([[3, 1, 2], [4, 1], [5], []].map(median)).toEqual([2, 2.5, 5, 0]);
  });

  test('a chart has a bar for each ratio to the floor, and its texts escaped', () => {
    const drawn = chart(panelsOf([table]), 'a machine & a day');
    expect(drawn.match(/<rect /g)).toHaveLength(1);
    expect(drawn).toContain('20 × 1, relay &#60;new&#62;');
    expect(drawn).toContain('0.80  (4,000/s)');
    expect(drawn).toContain('a machine &#38; a day');
  });

  test('a profile adds up the self time between two times, without idling', () => {
    const frame = (functionName: string) => ({ functionName, url: '', lineNumber: -1 });
    const names = ['(idle)', 'parse', 'store'];
    const times = selfTimes(
      {
        nodes: names.map((name, index) => ({ id: index + 1, callFrame: frame(name) })),
        startTime: 100,
        samples: [2, 1, 2, 3, 2],
        timeDeltas: [10, 10, 10, 10, 10],
      },
      { from: 115, to: 145 },
      ({ functionName }) => functionName,
    );
    expect([...times]).toEqual([
      ['parse', 10],
      ['store', 10],
    ]);
  });
});
