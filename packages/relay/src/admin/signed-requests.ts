/** Requests that are signed with the token, so that the page never sends it (0041). */
import { createHmac } from 'node:crypto';
import type { Random } from '@posthouse/protocol/crypto';
import { BoundedMap } from '../bounded-map.ts';
import type { Clock } from '../context.ts';
import { isSame } from './token.ts';

/** Seconds for which a nonce can be used, once. */
const lifetime = 60;
/** Used nonces that are remembered: only requests with the right signature use one up. */
const maxUsed = 100_000;

/** `<Unix seconds>-<random>-<HMAC by the process's own key>`, hexadecimal. */
const noncePattern = /^([0-9a-f]{1,13})-[0-9a-f]{32}-[0-9a-f]{64}$/;
const headerPattern = /^Posthouse ([0-9a-f-]{1,128}) ([0-9a-f]{64}) ([0-9a-f]{64})$/;

function signatureOf(
  token: string,
  { nonce, path, digest }: Record<'nonce' | 'path' | 'digest', string>,
): string {
  return createHmac('sha256', Buffer.from(token, 'hex'))
    .update(`posthouse admin request\n${nonce}\n${path}\n${digest}`)
    .digest('hex');
}

/**
 * Makes nonces and checks signatures. A program that listens in place of the relay can pass a signed
 * request on, once and unchanged; it learns nothing with which it could make another.
 */
export class SignedRequests {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: Random;
  readonly #token: string;
  readonly #key: Uint8Array;
  readonly #used = new BoundedMap<string, true>(maxUsed);

  constructor(parts: {
    readonly clock: Pick<Clock, 'now'>;
    readonly random: Random;
    readonly token: string;
  }) {
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#token = parts.token;
    this.#key = parts.random(32);
  }

  /** Makes a nonce for one request. */
  nonce(): string {
    const random = Buffer.from(this.#random(16)).toString('hex');
    const text = `${this.#clock.now().toString(16)}-${random}`;
    return `${text}-${this.#sealOf(text)}`;
  }

  /**
   * Checks the header of a request, which counts once.
   * @returns the digest that the body must have, hexadecimal; `undefined` if the header is wrong
   */
  bodyDigestOf(header: string, path: string): string | undefined {
    const [, nonce = '', digest = '', signature = ''] = headerPattern.exec(header) ?? [];
    const isValid =
      this.#isOwn(nonce) && isSame(signature, signatureOf(this.#token, { nonce, path, digest }));
    if (!isValid || this.#used.peek(nonce) !== undefined) return undefined;
    this.#used.set(nonce, true);
    return digest;
  }

  #isOwn(nonce: string): boolean {
    const [, seconds] = noncePattern.exec(nonce) ?? [];
    if (seconds === undefined) return false;
    const end = nonce.lastIndexOf('-');
    const isFresh = Math.abs(this.#clock.now() - Number.parseInt(seconds, 16)) <= lifetime;
    return isFresh && isSame(nonce.slice(end + 1), this.#sealOf(nonce.slice(0, end)));
  }

  #sealOf(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex');
  }
}
