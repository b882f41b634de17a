import { payerKey } from '../dispatch/allowances.ts';
import type { ByteOwner } from './byte-ledger.ts';

/** Has one connection, or body, receive nothing for so many seconds. */
export type Pause = (seconds: number) => void;

/**
 * The connections of each owner that receive. When the owner begins to owe, all of them pause. Otherwise
 * each one would still read the frames of a piece, and an address may have 2,000. What arrives after the
 * pause is one read of the system's at most, unread (`GatheredChunks`).
 */
export class Receivers {
  readonly #ofOwner = new Map<string, Set<Pause>>();

  /** Adds a connection that receives. */
  add(owner: ByteOwner, pause: Pause): void {
    const key = payerKey(owner);
    const known = this.#ofOwner.get(key);
    if (known === undefined) this.#ofOwner.set(key, new Set([pause]));
    else known.add(pause);
  }

  /** Removes a connection that receives nothing now. */
  delete(owner: ByteOwner, pause: Pause): void {
    const key = payerKey(owner);
    const known = this.#ofOwner.get(key);
    known?.delete(pause);
    if (known?.size === 0) this.#ofOwner.delete(key);
  }

  /** Pauses and removes all connections of an owner. */
  pauseAll(owner: ByteOwner, seconds: number): void {
    const key = payerKey(owner);
    const all = this.#ofOwner.get(key);
    this.#ofOwner.delete(key);
    for (const pause of all ?? []) pause(seconds);
  }
}
