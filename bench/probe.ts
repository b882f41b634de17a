/**
 * Preloaded by servers that a bench starts (`node --import`): answers each message of the bench with
 * the CPU time that the process has used. A relay in service has nothing of the kind.
 */
import { isMainThread } from 'node:worker_threads';

/** CPU time used so far, microseconds. */
export interface CpuTimes {
  /** Of all threads. */
  readonly process: number;
  /** Of the thread with the event loop. */
  readonly loop: number;
}

const sum = ({ user, system }: NodeJS.CpuUsage) => user + system;

// Worker threads of the server are started with the same options.
if (isMainThread && process.send !== undefined) {
  process.on('message', () => {
    const times: CpuTimes = {
      process: sum(process.cpuUsage()),
      loop: sum(process.threadCpuUsage()),
    };
    process.send?.(times);
  });
  // The server still ends by itself.
  process.channel?.unref();
}
