/** X25519 pairs of members, of people who want to be one, and boxes sealed to them. */

import { encodeBase64url } from '@posthouse/protocol';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';

/** An X25519 pair. */
export interface MemberKey {
  /** 32 bytes. */
  readonly privateKey: Uint8Array;
  /** base64url. */
  readonly publicKey: string;
}

/** Pairs by account: those in force, those asked for, and all there ever were. */
export class KeyRing {
  readonly #pairs = new Map<string, MemberKey>();
  readonly #current = new Map<string, MemberKey>();
  readonly #candidates = new Map<string, MemberKey>();

  /** A new pair; boxes of the past stay to be opened. */
  make(): MemberKey {
    const privateKey = nodeRandom(32);
    const publicKey = encodeBase64url(nodePrimitives.x25519.publicKey(privateKey));
    const pair = { privateKey, publicKey };
    this.#pairs.set(publicKey, pair);
    return pair;
  }

  /** A new pair that an account asks for. */
  propose(account: string): MemberKey {
    const pair = this.make();
    this.#candidates.set(account, pair);
    return pair;
  }

  /** The pair an account asks for. */
  candidate(account: string): MemberKey {
    return found(this.#candidates.get(account));
  }

  /** Puts a pair into force, by default the one that was asked for. */
  activate(account: string, pair = this.candidate(account)): void {
    this.#current.set(account, pair);
  }

  /** The pair in force. */
  of(account: string): MemberKey {
    return found(this.#current.get(account));
  }

  /** The private key of a pair made here. */
  privateKeyOf(publicKey: string): Uint8Array | undefined {
    return this.#pairs.get(publicKey)?.privateKey;
  }
}

function found(pair: MemberKey | undefined): MemberKey {
  if (pair === undefined) throw new Error('the account has no such pair');
  return pair;
}
