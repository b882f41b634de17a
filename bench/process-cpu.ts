/** CPU time of processes that a bench cannot ask, such as database servers, and waits for a core. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks of `/proc`, the same on every Linux. */
const ticksPerSecond = 100;

/** Milliseconds for which this thread was ready to run and had no core, so far; NaN if it is not known. */
export function waitedForCore(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6;
  } catch {
    return Number.NaN;
  }
}

/** Reads the fields of `/proc/PID/stat` after the name, which may contain spaces. */
function statOf(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return []; // It ended meanwhile.
  }
}

/** Reads the CPU seconds of a process and of the children it waited for. */
function cpuOf(pid: number): number {
  const ticks = statOf(pid).slice(11, 15);
  return ticks.reduce((sum, field) => sum + Number(field), 0) / ticksPerSecond;
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return pids.map(Number).filter((pid) => Number(statOf(pid)[1]) === parent);
}

/** Adds up the CPU seconds of processes and of their running children. */
export function cpuWithChildren(pids: readonly number[]): number {
  const all = [...pids, ...pids.flatMap(childrenOf)];
  return all.reduce((sum, pid) => sum + cpuOf(pid), 0);
}
