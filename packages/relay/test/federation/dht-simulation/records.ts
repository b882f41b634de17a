/** Records of the simulated DHT: the relay's own checks, with signatures verified once in all. */
import { type FinalRoute, hex } from '@posthouse/protocol';
import { type SignatureCheck, verifySignatures } from '@posthouse/protocol/crypto';
import { deriveRouteKey, type KadRecord } from '@posthouse/protocol/federation';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import type { Clock } from '../../../src/context.ts';
import { readRouteRecord, verifyRouteRecord } from '../../../src/federation/dht/route-record.ts';
import type { RelayLimits } from '../../../src/limits.ts';
import { network } from '../../support/modules.ts';

const keys = new Map<string, string>();

/** Returns the DHT key of an account's route, in hex. */
export function routeKey(account: string): string {
  const key = keys.get(account) ?? hex(deriveRouteKey(network, account));
  keys.set(account, key);
  return key;
}

export class Records {
  readonly #limits: RelayLimits;
  readonly #publicKeys: ReadonlyMap<string, string>;
  readonly #verified = new Set<string>();

  /** @param publicKeys of the relays that the registry lists as active, by relay ID */
  constructor(limits: RelayLimits, publicKeys: ReadonlyMap<string, string>) {
    this.#limits = limits;
    this.#publicKeys = publicKeys;
  }

  /**
   * Reads and verifies a record as a relay does (07 §B10); `undefined` if it is invalid.
   *
   * @param isTrusted whether signatures are not verified, which is a defect
   */
  async validated(
    { key, value }: KadRecord,
    clock: Clock,
    isTrusted: boolean,
  ): Promise<FinalRoute | undefined> {
    if (key === undefined || value === undefined) return undefined;
    try {
      const route = readRouteRecord({ network, clock, limits: this.#limits }, { key, value });
      if (isTrusted) return route;
      const context = { network, verifier: this.#verifier };
      await verifyRouteRecord(context, this.#eligibility, { route, cause: '' });
      return route;
    } catch {
      return undefined;
    }
  }

  readonly #eligibility = {
    verifyRouteRelay: async (relayId: string) => {
      const publicKey = this.#publicKeys.get(relayId);
      if (publicKey === undefined) throw new Error('not an active relay');
      return publicKey;
    },
  };

  readonly #verifier = {
    verify: async (checks: readonly SignatureCheck[], what: string) => {
      verifySignatures(primitives, checks, what);
    },
    verifyOnce: async (text: string, checks: () => readonly SignatureCheck[], what: string) => {
      if (this.#verified.has(text)) return;
      verifySignatures(primitives, checks(), what);
      this.#verified.add(text);
    },
    hasVerified: (text: string) => this.#verified.has(text),
  };
}
