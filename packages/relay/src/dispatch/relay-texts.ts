import { ProtocolError } from '@posthouse/protocol';
import { decodeUtf8 } from '@posthouse/protocol/json';
import type { RelayLimits } from '../limits.ts';
import type { CallTurns } from './call-turns.ts';
import type { LongWork } from './long-work.ts';
import { parsedBytes } from './parsed-bytes.ts';
import { largeText, type Steps } from './slices.ts';
import { TextRoom } from './text-room.ts';

/** Part of `peerBytes` that texts of one kind, requests or answers, take once they are read. */
const shareOfHeld = 1 / 4;

export interface RelayTextsParts {
  readonly limits: Pick<RelayLimits, 'peerBytes' | 'relayTextBytes'>;
  readonly longWork: LongWork;
  /** Reads small texts at once, in turns of the relays. */
  readonly turns: Pick<CallTurns, 'take'>;
  /** Counts what is held for all other relays. */
  readonly held?: { used: number };
}

/** How a text is read. */
export interface TextReading<T> {
  readonly atOnce: (text: string) => T;
  /** For large texts. */
  readonly inSteps: (text: string) => Steps<T>;
}

/** Reads the texts that other relays send: requests, or answers. */
export class RelayTexts {
  readonly #longWork: LongWork;
  readonly #turns: Pick<CallTurns, 'take'>;
  readonly #room: TextRoom;

  constructor({ limits, longWork, turns, held }: RelayTextsParts) {
    this.#longWork = longWork;
    this.#turns = turns;
    this.#room = new TextRoom({
      ofEach: limits.relayTextBytes,
      total: Math.floor(limits.peerBytes * shareOfHeld),
      first: largeText,
      ...(held !== undefined && { held }),
    });
  }

  /**
   * Waits until there is room for what a text becomes; disposing of the result gives it back.
   *
   * @throws ProtocolError `request_too_large` if a text becomes more than one relay may have; the
   *   signal's reason
   */
  async takeRoom(relayId: string, bytes: Uint8Array, signal?: AbortSignal): Promise<Disposable> {
    const needed = parsedBytes(bytes);
    if (!this.#room.fits(needed)) {
      throw new ProtocolError('request_too_large', 'too many values in one text');
    }
    return await this.#room.take(relayId, needed, signal);
  }

  /**
   * Reads a text when it is the relay's turn: a large one in steps.
   *
   * @throws JsonError if the bytes are no UTF-8; what `reading` throws; the signal's reason
   */
  async read<T>(
    relayId: string,
    bytes: Uint8Array,
    { atOnce, inSteps, signal }: TextReading<T> & { readonly signal?: AbortSignal },
  ): Promise<T> {
    if (bytes.length < largeText) {
      await this.#turns.take(`relay ${relayId}`);
      signal?.throwIfAborted();
      return atOnce(decodeUtf8(bytes));
    }
    return await this.#longWork.read(`relay ${relayId}`, () => {
      signal?.throwIfAborted();
      return inSteps(decodeUtf8(bytes));
    });
  }

  /** Runs other work on what was read, in steps. */
  async inSteps<T>(relayId: string, steps: Steps<T>): Promise<T> {
    return await this.#longWork.run(`relay ${relayId}`, steps);
  }
}
