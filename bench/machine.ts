/** The machine and the code that a bench ran on. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir, totalmem } from 'node:os';
import { flushesPerSecond, verificationsPerSecond } from './support.ts';
import type { Table } from './table.ts';

export interface Machine {
  /** Day of the run, UTC. */
  readonly date: string;
  /** Commit, with `and changes` if the checkout has any. */
  readonly commit: string;
  readonly cores: number;
  readonly memory: string;
  /** Kind of the disk with the databases. */
  readonly disk: string;
  readonly node: string;
  /** Processes that wanted a core in the minute before: what else ran. */
  readonly load: number;
}

/** Names the commit of a checkout, with `and changes` if files of it differ. */
export function commitOf(checkout: string): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: checkout, encoding: 'utf8' }).trim();
  const changes = git('status', '--porcelain', '--untracked-files=no');
  return git('rev-parse', '--short=8', 'HEAD') + (changes === '' ? '' : ' and changes');
}

/** Describes the machine; `checkout` is the folder of the measured code. */
export function describeMachine(checkout: string): Machine {
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commitOf(checkout),
    cores: availableParallelism(),
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    disk: diskKind(),
    node: process.version,
    load: loadavg()[0] ?? 0,
  };
}

/** Names the kind of disk of the folder for temporary files, as far as Linux tells. */
function diskKind(): string {
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    const folder = realpathSync(tmpdir());
    const [device = '', , system = ''] =
      mounts
        .map((line) => line.split(' '))
        .filter(([, at = '']) => at === '/' || folder === at || folder.startsWith(`${at}/`))
        .sort(([, a = ''], [, b = '']) => b.length - a.length)[0] ?? [];
    if (system === 'tmpfs') return 'memory (tmpfs)';
    const name = device.replace(/^\/dev\//, '');
    const [disk] = readdirSync('/sys/block').filter((block) => name.startsWith(block));
    if (disk === undefined) return system;
    if (disk.startsWith('vd') || disk.startsWith('xvd')) return `virtual disk, ${system}`;
    const isTurning = readFileSync(`/sys/block/${disk}/queue/rotational`, 'utf8').trim() === '1';
    return `${isTurning ? 'hard disk' : 'solid-state disk'}, ${system}`;
  } catch {
    return 'unknown disk';
  }
}

/** Formats the machine as one line. */
export function machineLine({ date, commit, load, ...machine }: Machine): string {
  const { cores, memory, disk, node } = machine;
  const before = `load ${load.toFixed(1)} before`;
  return `${date}, commit ${commit}, ${cores} cores, ${memory}, ${disk}, Node ${node}, ${before}`;
}

/** Measures what the machine can do without a server. */
export function rawCosts(): Table {
  return {
    section: 'machine',
    title: 'The machine alone',
    columns: [
      { key: 'what', label: 'what' },
      { key: 'perSecond', label: 'per second' },
    ],
    rows: [
      { what: 'Ed25519 verifications on one thread', perSecond: verificationsPerSecond() },
      {
        what: 'durable appends of 8 KiB, one after another',
        perSecond: flushesPerSecond(tmpdir()),
      },
    ],
  };
}
