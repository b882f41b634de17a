/** What one message costs storage: flushes, reads and writes of the process, statements. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Person } from '../../packages/relay/test/fixtures/person.ts';
import type { MeasuredServer } from '../measured-process.ts';
import { MeasuredRelay } from '../measured-relay.ts';
import type { Cell, Table } from '../table.ts';
import type { Compared } from './compared.ts';

const withoutStrace =
  spawnSync('strace', ['--version']).error === undefined ? undefined : 'strace is not installed';

/** Loads under which calls of the system are counted. */
export const storageSettings = [
  { connections: 20, window: 1 },
  { connections: 100, window: 16 },
] as const;

/** Counts calls of the system by name, of all threads of a process. */
class SystemCalls {
  readonly #child: ChildProcess;
  readonly #file: string;

  private constructor(child: ChildProcess, file: string) {
    this.#child = child;
    this.#file = file;
  }

  static async start(pid: number, file: string): Promise<SystemCalls> {
    const counted = 'trace=fsync,fdatasync,pread64,pwrite64,pwritev,pwritev2';
    const options = ['-f', '-c', '-e', counted, '-o', file, '-p', String(pid)];
    const child = spawn('strace', options, { stdio: ['ignore', 'ignore', 'pipe'] });
    const lines = createInterface({ input: child.stderr as NonNullable<typeof child.stderr> });
    const attached = once(lines, 'line');
    const ended = once(child, 'exit').then(() => ['ended']);
    const [line] = (await Promise.race([attached, ended])) as [string];
    if (!line.includes('attached')) throw new Error(`strace does not attach: ${line}`);
    return new SystemCalls(child, file);
  }

  /** Detaches and returns the number of calls by name. */
  async stop(): Promise<ReadonlyMap<string, number>> {
    this.#child.kill('SIGINT');
    await once(this.#child, 'exit');
    const lines = readFileSync(this.#file, 'utf8').split('\n');
    // % time, seconds, usecs/call, calls, [errors,] syscall
    const calls = lines.flatMap((line) => {
      const cells = line.trim().split(/\s+/);
      const [count, name] = [Number(cells[3]), cells.at(-1) ?? ''];
      return Number.isInteger(count) && /^f|^p/.test(name) ? [[name, count] as const] : [];
    });
    return new Map(calls);
  }
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
        const calls = await SystemCalls.start(processes[0]?.pid as number, file);
        const { accepted } = await generator.run(server, { window });
        const counted = await calls.stop();
        const each = (...names: string[]) =>
          names.reduce((sum, name) => sum + (counted.get(name) ?? 0), 0) / accepted;
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
const counted = 20;

/** Counts the SQL statements of one local message, this checkout's relay only. */
export async function statementTable(): Promise<Table> {
  await using relay = await MeasuredRelay.open('sqlite');
  const ann = await Person.register(relay, 'ann');
  const ben = await Person.register(relay, 'ben');
  const rows: Record<string, Cell>[] = [];
  for (const senders of [[], ['phone']]) {
    let statements = 0;
    relay.meter = (_, cost) => {
      statements += cost.statements;
    };
    for (let sent = 0; sent < counted; sent += 1) {
      const message = ann.message(ben, { authorization: ben.grant(ann), senders });
      await relay.call('message.send', message, { session: ann.session() });
    }
    const boxes = senders.length === 0 ? 'without boxes of the sender' : 'with one';
    rows.push({ boxes, statements: statements / counted });
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
