/** What a verb is: one thing that an operator asks or changes, over the command line and HTTP alike. */
import { badRequest, checkSchema, type Static, type TSchema, type Type } from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import type { JsonObject } from '@posthouse/protocol/json';
import type { ProgressState } from '@posthouse/protocol/progress';
import type { Logger } from 'pino';
import type { RelayConfig } from '../config/index.ts';
import type { Clock } from '../context.ts';
import { changedByOperator } from '../observability/admin-events.ts';
import type { Storage } from '../storage/types.ts';

/** What a verb works with: there is the same in a running relay and in a command. */
export interface VerbTools {
  readonly storage: Storage;
  readonly clock: Pick<Clock, 'now'>;
  readonly random: Random;
  /** As the relay was started with it; limits and trusted proxies are those in force. */
  readonly config: RelayConfig;
  /** Takes how far a long verb is, as often as is convenient. */
  readonly progress?: ((state: ProgressState) => void) | undefined;
  /**
   * Takes items of a result that is too large for one answer, in order; resolves when there is room for
   * more. Absent if the caller cannot take them.
   */
  readonly emit?: ((items: readonly JsonObject[]) => Promise<void>) | undefined;
  /** Ends a long verb between two of its steps: a repeat goes on, or begins again. */
  readonly signal?: AbortSignal | undefined;
}

/** What a verb changed, as it is logged. */
type Subject = string | { readonly address: string };

/** The schema of a verb's parameters. */
type Params = ReturnType<typeof Type.Object>;

/** A verb, as it is declared. */
interface Definition<P extends Params> {
  /** `account`, as in `posthouse account allow` and `POST /admin/v1/account/allow`. */
  readonly noun: string;
  /** `allow`. */
  readonly name: string;
  readonly description: string;
  /** Members in snake_case; others are refused. */
  readonly params: P;
  /** Whether it changes anything; each change has a log line. */
  readonly changes: boolean;
  /**
   * What was changed, for that log line: an ID, no secret; an address, which is logged as the setting
   * `logAddresses` says. `undefined` if nothing was changed.
   * @param result what `run` returned
   */
  readonly subject?: (params: Static<P>, result: JsonObject) => Subject | undefined;
  /**
   * Does it.
   * @returns a list as `{ items, next }`, where `next` is the cursor of the next page, if there is one
   * @throws ProtocolError with a sentence that says what to do
   */
  readonly run: (tools: VerbTools, params: Static<P>) => Promise<JsonObject>;
}

/** A verb of any parameters. */
export interface Verb extends Omit<Definition<Params>, 'subject' | 'run'> {
  readonly subject?: (params: never, result: JsonObject) => Subject | undefined;
  readonly run: (tools: VerbTools, params: never) => Promise<JsonObject>;
}

/**
 * Declares a verb.
 *
 * @example
 * export const revoke = defineVerb({
 *   noun: 'invite',
 *   name: 'revoke',
 *   description: 'end an invite',
 *   params: Type.Object({ id: Type.String() }),
 *   changes: true,
 *   subject: ({ id }) => id,
 *   run: async (tools, { id }) => ({ id }),
 * });
 */
export function defineVerb<P extends Params>(definition: Definition<P>): Verb {
  return definition;
}

/** Who runs a verb, and what its changes are logged with. */
export interface Runner {
  readonly tools: VerbTools;
  readonly log: Logger;
  readonly by: 'command' | 'http';
}

/**
 * Checks the parameters, does what the verb does, and logs a change.
 *
 * @throws ProtocolError `bad_request` for wrong parameters, and what the verb throws
 */
export async function runVerb(
  verb: Verb,
  params: JsonObject,
  { tools, log, by }: Runner,
): Promise<JsonObject> {
  const known = (verb.params as { readonly properties: Record<string, TSchema> }).properties;
  const unknown = Object.keys(params).find((name) => !Object.hasOwn(known, name));
  // A misspelt member would change more than was meant.
  if (unknown !== undefined) throw badRequest(unknown, 'there is no such member');
  checkSchema(verb.params, params);
  checkTexts(params);
  const result = await verb.run(tools, params as never);
  const subject = verb.subject?.(params as never, result);
  if (verb.changes && subject !== undefined) {
    const facts = typeof subject === 'string' ? { subject } : subject;
    changedByOperator({ log }, { verb: `${verb.noun} ${verb.name}`, ...facts, by });
  }
  return result;
}

/** Refuses what PostgreSQL does not store in a text. */
function checkTexts(params: JsonObject): void {
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === 'string' && value.includes('\0')) {
      throw badRequest(name, 'has a NUL character');
    }
  }
}
