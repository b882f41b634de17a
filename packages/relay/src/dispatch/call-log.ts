import { encodeBase64url } from '@posthouse/protocol';
import type { Logger } from 'pino';
import type { RelayContext } from '../context.ts';

/** Bytes of an ID. */
const idBytes = 9;

/**
 * The log of one call: each line has the same `request`, an ID, and who called. Most calls write no
 * line, and make neither the ID nor a logger.
 */
export class CallLog {
  readonly #context: Pick<RelayContext, 'log' | 'random'>;
  readonly #caller: object;
  #id: string | undefined;
  #log: Logger | undefined;

  /** @param caller members of each line: the address of a client, or the ID of a relay */
  constructor(context: Pick<RelayContext, 'log' | 'random'>, caller: object) {
    this.#context = context;
    this.#caller = caller;
  }

  /** Also the ID of an internal error, by which a caller can ask the operator. */
  get id(): string {
    this.#id ??= encodeBase64url(this.#context.random(idBytes));
    return this.#id;
  }

  get log(): Logger {
    this.#log ??= this.#context.log.child(this.facts);
    return this.#log;
  }

  get facts(): object {
    return { request: this.id, ...this.#caller };
  }
}
