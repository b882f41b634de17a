/**
 * Proves that a request comes from a command that has the relay's keys: `posthouse check` asks the
 * running relay through the public address, where strangers ask too.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

/** The header of a request with such a proof. */
export const checkProofHeader = 'x-posthouse-check';

/** The path after a base address. */
export const checkPath = '/posthouse-check';

/** What the relay sees of a request. */
export interface SeenRequest {
  /** The other end of the connection: a proxy, or the client. */
  readonly peer: string;
  /** Whether `trustedProxies` has it. */
  readonly is_trusted: boolean;
  /** What limits count. */
  readonly client: string;
  /** `X-Forwarded-For`; absent without it. */
  readonly forwarded?: string;
}

/** Seconds for which a proof can be used: clocks of two machines may differ a little. */
const life = 60;

const form = /^([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})$/;

/** Derives the secret of proofs from the relay's private key, which cannot be found from it. */
export function checkSecret(relayKey: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', relayKey, '', 'posthouse check', 32));
}

/** Makes the text of the header. @param now Unix seconds */
export function makeCheckProof(secret: Uint8Array, now: number): string {
  const signed = `${now}.${randomBytes(16).toString('hex')}`;
  return `${signed}.${macOf(secret, signed).toString('hex')}`;
}

/** Tells whether a header has a proof of the secret, made within a minute. @param now Unix seconds */
export function isCheckProof(secret: Uint8Array, text: unknown, now: number): boolean {
  const [, time, nonce, mac] = (typeof text === 'string' ? form.exec(text) : null) ?? [];
  if (time === undefined || mac === undefined) return false;
  if (Math.abs(Number(time) - now) > life) return false;
  return timingSafeEqual(Buffer.from(mac, 'hex'), macOf(secret, `${time}.${nonce}`));
}

function macOf(secret: Uint8Array, text: string): Buffer {
  return createHmac('sha256', secret).update(text).digest();
}
