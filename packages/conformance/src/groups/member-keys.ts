/** X25519 key pairs of members and applicants. */

import { encodeBase64url } from '@posthouse/protocol';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';

/** An X25519 key pair. */
export interface MemberKey {
  /** 32 bytes. */
  readonly privateKey: Uint8Array;
  /** base64url. */
  readonly publicKey: string;
}

/** Key pairs by account: current pairs, candidates of requests, and all pairs ever made. */
export class KeyRing {
  readonly #pairs = new Map<string, MemberKey>();
  readonly #current = new Map<string, MemberKey>();
  readonly #candidates = new Map<string, MemberKey>();

  /** Makes a pair and retains it, so that old boxes can be opened. */
  make(): MemberKey {
    const privateKey = nodeRandom(32);
    const publicKey = encodeBase64url(nodePrimitives.x25519.publicKey(privateKey));
    const pair = { privateKey, publicKey };
    this.#pairs.set(publicKey, pair);
    return pair;
  }

  /** Makes an account's candidate pair, for an application or a recovery request. */
  propose(account: string): MemberKey {
    const pair = this.make();
    this.#candidates.set(account, pair);
    return pair;
  }

  /** Returns an account's candidate pair. */
  candidate(account: string): MemberKey {
    return required(this.#candidates.get(account));
  }

  /** Makes a pair the current one; by default the candidate. */
  activate(account: string, pair = this.candidate(account)): void {
    this.#current.set(account, pair);
  }

  /** Returns an account's current pair. */
  of(account: string): MemberKey {
    return required(this.#current.get(account));
  }

  /** Returns the private key of a pair that was made here. */
  privateKeyOf(publicKey: string): Uint8Array | undefined {
    return this.#pairs.get(publicKey)?.privateKey;
  }
}

function required(pair: MemberKey | undefined): MemberKey {
  if (pair === undefined) throw new Error('the account has no such key pair');
  return pair;
}
