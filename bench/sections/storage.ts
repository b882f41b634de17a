/** What one message costs storage: flushes, reads and writes of the process, statements. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Person } from '../../packages/relay/test/fixtures/person.ts';
import type { MeasuredServer } from '../measured-process.ts';
import { MeasuredRelay } from '../measured-relay.ts';
import { Strace, withoutStrace } from '../strace.ts';
import type { Cell, Table } from '../table.ts';
import type { Compared } from './compared.ts';

/** Loads under which calls of the system are counted. */
export const storageSettings = [
  { connections: 20, window: 1 },
  { connections: 100, window: 16 },
] as const;

const counted = ['fsync', 'fdatasync', 'pread64', 'pwrite64', 'pwritev', 'pwritev2'];

/** Reads the number of calls by name from what `strace -c` wrote. */
function countsOf(text: string): ReadonlyMap<string, number> {
  // % time, seconds, usecs/call, calls, [errors,] syscall
  const counts = text.split('\n').flatMap((line) => {
    const cells = line.trim().split(/\s+/);
    const [count, name] = [Number(cells[3]), cells.at(-1) ?? ''];
    return Number.isInteger(count) && counted.includes(name) ? [[name, count] as const] : [];
  });
  return new Map(counts);
}

/** Bytes of the write-ahead log, which never becomes shorter while it is in use. */
function logBytes({ database }: MeasuredServer): number {
  return statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** Counts calls of the system for each message of floor and relays. */
export async function storageTable(parts: Compared, folder: string): Promise<Table> {
  const { servers, generator, seconds } = parts;
  const rows: Record<string, Cell>[] = [];
  for (const { connections, window } of storageSettings) {
    const messages = Math.max(Math.ceil(2_000 * seconds), connections * window);
    await generator.order({ do: 'messages', connections, messages });
    for (const server of servers) {
      const { processes, target } = server;
      const row: Record<string, Cell> = { connections, window, server: target.name };
      rows.push(row);
      if (withoutStrace === undefined) {
        const file = join(folder, 'strace');
        const options = { calls: counted, options: ['-c'], file };
        const strace = await Strace.attach(processes[0]?.pid as number, options);
        const { accepted } = await generator.run(server, { window });
        const counts = countsOf(await strace.detach());
        const each = (...names: string[]) =>
          names.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0) / accepted;
        row.flushes = each('fsync', 'fdatasync');
        row.reads = each('pread64');
        row.writes = each('pwrite64', 'pwritev', 'pwritev2');
      } else await generator.run(server, { window });
      row.log = logBytes(server) / 2 ** 20;
    }
  }
  return {
    section: 'storage',
    title: 'Storage: calls of the system for each message on SQLite',
    columns: [
      { key: 'connections', label: 'connections' },
      { key: 'window', label: 'window' },
      { key: 'server', label: 'server' },
      { key: 'flushes', label: 'flushes', digits: 3 },
      { key: 'reads', label: 'preads', digits: 2 },
      { key: 'writes', label: 'pwrites', digits: 2 },
      { key: 'log', label: 'log MiB', digits: 1 },
    ],
    rows,
    notes: [
      ...(withoutStrace === undefined ? [] : [`Calls are not counted: ${withoutStrace}.`]),
      'log MiB: the largest that the write-ahead log was so far.',
    ],
  };
}

/** Messages whose statements are counted. */
const measured = 20;

/** Counts the SQL statements of one local message, this checkout's relay only. */
export async function statementTable(): Promise<Table> {
  await using relay = await MeasuredRelay.open('sqlite');
  const ann = await Person.register(relay, 'ann');
  const ben = await Person.register(relay, 'ben');
  const rows: Record<string, Cell>[] = [];
  for (const senders of [[], ['phone']]) {
    let statements = 0;
    const send = async () => {
      const message = ann.message(ben, { authorization: ben.grant(ann), senders });
      await relay.call('message.send', message, { session: ann.session() });
    };
    // The grant is verified with the first one, and the certificate stored.
    await send();
    relay.meter = (_, cost) => {
      statements += cost.statements;
    };
    for (let sent = 0; sent < measured; sent += 1) await send();
    const boxes = senders.length === 0 ? 'without boxes of the sender' : 'with one';
    rows.push({ boxes, statements: statements / measured });
  }
  return {
    section: 'storage',
    title: 'Storage: SQL statements of a message',
    columns: [
      { key: 'boxes', label: 'message' },
      { key: 'statements', label: 'statements', digits: 2 },
    ],
    rows,
    notes: ['Without BEGIN, COMMIT and savepoints.'],
  };
}
