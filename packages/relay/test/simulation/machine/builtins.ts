/**
 * What code takes from Node without asking: timers, time and chance. While a simulation runs, all of
 * it comes from the simulation, in every module.
 */
import nodeCrypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import nodeTimers from 'node:timers';
import promisedTimers from 'node:timers/promises';
import type { Chance } from './chance.ts';
import type { Scheduler } from './scheduler.ts';

export interface Simulation {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  /** Unix seconds at which it begins. */
  readonly start: number;
}

let running: Simulation | undefined;

/** The simulation of this process. */
export function simulation(): Simulation {
  if (running === undefined) throw new Error('no simulation runs');
  return running;
}

/** A timer as Node's functions return it. */
class SimulatedTimer {
  readonly #task: Disposable;

  constructor(task: Disposable) {
    this.#task = task;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  [Symbol.dispose](): void {
    this.#task[Symbol.dispose]();
  }
}

type Work = (...values: unknown[]) => void;

const replaced = {
  setTimeout: (work: Work, milliseconds = 0, ...values: unknown[]) =>
    new SimulatedTimer(simulation().scheduler.after(milliseconds, () => work(...values))),
  setImmediate: (work: Work, ...values: unknown[]) =>
    new SimulatedTimer(simulation().scheduler.soon(() => work(...values))),
  clearTimeout: (timer?: SimulatedTimer) => timer?.[Symbol.dispose](),
  clearImmediate: (timer?: SimulatedTimer) => timer?.[Symbol.dispose](),
};

const promised = {
  setTimeout: (milliseconds: number, value: unknown) =>
    new Promise((resolve) => simulation().scheduler.after(milliseconds, () => resolve(value))),
  setImmediate: (value: unknown) =>
    new Promise((resolve) => simulation().scheduler.soon(() => resolve(value))),
};

function randomBytes(length: number): Buffer {
  return Buffer.from(simulation().chance.bytes(length));
}

function getRandomValues<T extends NodeJS.TypedArray>(array: T): T {
  const bytes = simulation().chance.bytes(array.byteLength);
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(bytes);
  return array;
}

function milliseconds(): number {
  const { scheduler, start } = simulation();
  return start * 1_000 + scheduler.milliseconds;
}

/**
 * Replaces timers, time and chance for the rest of this process. Modules that are imported later, and
 * those that were imported before, use the replacements.
 */
export function replaceBuiltins(): void {
  Object.assign(globalThis, replaced);
  Object.assign(nodeTimers, replaced);
  Object.assign(promisedTimers, promised);
  Object.assign(nodeCrypto, { randomBytes });
  Object.assign(globalThis.crypto, { getRandomValues });
  Object.assign(globalThis.performance, { now: () => simulation().scheduler.milliseconds });
  Date.now = () => Math.floor(milliseconds());
  Math.random = () => simulation().chance.number();
  syncBuiltinESMExports();
}

/** Makes a simulation the one whose time and chance this process uses. */
export function enter(entered: Simulation): void {
  running = entered;
}
