/**
 * A relay that kills itself with SIGKILL at a point of its own code, in a process of its own:
 * `mortal-relay.ts <configuration file> <plan>`. All else is as `posthouse serve` does it.
 */
import { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { WebSocket } from 'ws';
import { readyLine } from '../../src/commands/ready-line.ts';
import { loadConfig } from '../../src/config/index.ts';
import { Relay } from '../../src/relay.ts';
import type { StorageFaults } from '../../src/storage/types.ts';
import type { CrashPlan, CrashPoint } from './plan.ts';

const [file = '', text = ''] = process.argv.slice(2);
const plan = JSON.parse(text) as CrashPlan;
const { config } = loadConfig({ file });

/** Ends the process some microseconds after it is notified, whatever the main thread does. */
const executioner = `
  const { parentPort, workerData } = require('node:worker_threads');
  const flag = new Int32Array(workerData.flag);
  parentPort.postMessage('ready');
  Atomics.wait(flag, 0, 0);
  const end = process.hrtime.bigint() + BigInt(workerData.delay) * 1000n;
  while (process.hrtime.bigint() < end);
  process.kill(process.pid, 'SIGKILL');
`;

const flag = new SharedArrayBuffer(4);

async function startExecutioner(): Promise<void> {
  const worker = new Worker(executioner, {
    eval: true,
    workerData: { flag, delay: plan.delay },
  });
  worker.unref();
  await new Promise((resolve) => worker.once('message', resolve));
}

let passes = 0;

function pass(point: CrashPoint): void {
  if (point !== plan.point) return;
  passes += 1;
  if (passes !== plan.pass) return;
  if (plan.delay === 0) process.kill(process.pid, 'SIGKILL');
  Atomics.store(new Int32Array(flag), 0, 1);
  Atomics.notify(new Int32Array(flag), 0);
  if (point === 'checkpoint') checkpoint();
}

/** Copies the log to the database, which SQLite does by itself in some of its commits. */
function checkpoint(): void {
  const database = new DatabaseSync(join(config.data, 'relay.sqlite'));
  for (;;) database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
}

let isReady = false;
const faults: StorageFaults = {
  beforeStatement: () => pass(isReady ? 'statement' : 'start'),
  reach(point) {
    if (!isReady) return;
    pass(point);
    if (point === 'answer') pass('checkpoint');
  },
};

/** Passes two points, before and after a method does its work. */
function around<T extends object>(
  object: T,
  method: keyof T & string,
  [before, after]: readonly [CrashPoint, CrashPoint],
): void {
  const original = object[method] as (...args: unknown[]) => unknown;
  const replacement = function (this: unknown, ...args: unknown[]): unknown {
    if (isReady) pass(before);
    const result = original.apply(this, args);
    if (isReady) pass(after);
    return result;
  };
  Object.assign(object, { [method]: replacement });
}

around(ServerResponse.prototype, 'end', ['send', 'sent']);
around(WebSocket.prototype, 'send', ['send', 'sent']);

if (plan.delay > 0) await startExecutioner();
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
const relay = await Relay.start(config, { signal: stopping.signal, faults });
around(relay.context.bus, 'publish', ['publish', 'published']);
isReady = true;
process.stdout.write(`${readyLine(relay)}\n`);
await relay.closed;
