/** The machine and the code that a bench ran on. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { availableParallelism, tmpdir, totalmem } from 'node:os';
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
}

/** Describes the machine; `checkout` is the folder of the measured code. */
export function describeMachine(checkout: string): Machine {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: checkout, encoding: 'utf8' });
  const changes =
    git('status', '--porcelain', '--untracked-files=no').trim() === '' ? '' : ' and changes';
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: git('rev-parse', '--short=8', 'HEAD').trim() + changes,
    cores: availableParallelism(),
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    disk: diskKind(),
    node: process.version,
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
export function machineLine({ date, commit, cores, memory, disk, node }: Machine): string {
  return `${date}, commit ${commit}, ${cores} cores, ${memory}, ${disk}, Node ${node}`;
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
