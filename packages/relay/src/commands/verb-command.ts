/** Commands that are verbs of the operator: the running relay runs them, else the command itself. */
import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import type { ProgressState } from '@posthouse/protocol/progress';
import type { Command } from 'commander';
import { type CallOptions, findRunningRelay, runVerb } from '../admin/index.ts';
import { findVerb } from '../admin/verbs/index.ts';
import { systemClock } from '../clock.ts';
import type { RelayConfig } from '../config/index.ts';
import { relayMigrations } from '../modules.ts';
import { createLog } from '../observability/log.ts';
import { openAlongside } from '../storage/open.ts';
import { configAndFlags } from './storage-command.ts';

/** Runs verbs, one after another. */
export interface VerbCaller {
  /** @throws ProtocolError */
  call(noun: string, name: string, params?: JsonObject): Promise<JsonObject>;
  /** Returns the items of all pages, at most `most`. */
  all<Item>(noun: string, name: string, params?: JsonObject, most?: number): Promise<Item[]>;
}

/** Members of a verb that are flags of its command. */
const isFlag = (of: Command, name: string) =>
  of.options.some((option) => option.attributeName() === name);

/** Milliseconds after which a verb shows how far it is. */
const quick = 1_000;

/**
 * Runs `work` with the verbs: those of the running relay, if it has an admin interface, else on the
 * database itself. Both give the same results.
 *
 * @param options progress of verbs that take longer than a second; a signal that ends the waiting
 */
export async function withVerbs<Own, T>(
  of: Command,
  work: (verbs: VerbCaller, own: Own, config: RelayConfig) => Promise<T>,
  { progress = () => {}, emit, signal }: CallOptions = {},
): Promise<T> {
  const { config, own } = configAndFlags<Own>(of);
  try {
    const running = await findRunningRelay(config);
    if (running !== undefined) {
      const call: VerbCaller['call'] = (noun, name, params = {}) =>
        running.call(noun, name, params, { progress, emit, signal });
      return await work(callerOf(call), own, config);
    }
    await using storage = await openAlongside(config, relayMigrations);
    const began = systemClock.monotonic();
    const tools = {
      ...{ storage, clock: systemClock, random: nodeRandom, config, emit, signal },
      progress: (state: ProgressState) => {
        if (systemClock.monotonic() - began >= quick) progress(state);
      },
    };
    // What a command prints is its result: log lines are the running relay's.
    const { log: asked } = of.optsWithGlobals<{ readonly log?: string }>();
    const level = asked === undefined ? 'silent' : config.log;
    const log = createLog(level, undefined, config.logAddresses);
    const call: VerbCaller['call'] = async (noun, name, params = {}) => {
      const verb = findVerb(noun, name);
      if (verb === undefined) throw new Error(`there is no verb ${noun} ${name}`);
      return await runVerb(verb, params, { tools, log, by: 'command' });
    };
    return await work(callerOf(call), own, config);
  } catch (error) {
    throw withFlagName(of, error);
  }
}

function callerOf(call: VerbCaller['call']) {
  const caller: VerbCaller = {
    call,
    async all<Item>(noun: string, name: string, params: JsonObject = {}, most = Infinity) {
      const found: Item[] = [];
      for (let cursor: JsonObject = {}; ; ) {
        const page = await call(noun, name, { ...params, ...cursor });
        found.push(...(page.items as Item[]));
        if (typeof page.next !== 'string' || found.length >= most) return found.slice(0, most);
        cursor = { cursor: page.next };
      }
    },
  };
  return caller;
}

/** Names the flag of a member that is wrong as the operator typed it. */
function withFlagName(of: Command, error: unknown): unknown {
  if (!(error instanceof ProtocolError)) return error;
  const [name = ''] = error.message.split(':', 1);
  return isFlag(of, name) ? new Error(`--${error.message}`, { cause: error }) : error;
}
