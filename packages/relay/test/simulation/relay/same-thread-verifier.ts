import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { nodePrimitives } from '@posthouse/protocol/node';
import type { Verifier } from '../../../src/context.ts';
import type { Chance } from '../machine/chance.ts';
import type { Scheduler } from '../machine/scheduler.ts';

/** Milliseconds that a check takes at most. */
const longest = 3;

/** Verifies signatures in this thread, and takes a time that chance decides. */
export class SameThreadVerifier implements Verifier {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #verified = new Set<string>();

  constructor(scheduler: Scheduler, chance: Chance) {
    this.#scheduler = scheduler;
    this.#chance = chance;
  }

  async verify(checks: readonly SignatureCheck[], what: string): Promise<void> {
    await this.#scheduler.pause(this.#chance.number() * longest);
    const areValid = checks.every(({ scheme, publicKey, message, signature }) =>
      nodePrimitives[scheme].verify(publicKey, message, signature),
    );
    if (areValid) return;
    throw new ProtocolError('invalid_signature', `${what}: signature does not verify`);
  }

  async verifyOnce(
    text: string,
    checks: () => readonly SignatureCheck[],
    what: string,
  ): Promise<void> {
    if (this.hasVerified(text, what)) return;
    await this.verify(checks(), what);
    this.#verified.add(`${what}\n${text}`);
  }

  hasVerified(text: string, what: string): boolean {
    return this.#verified.has(`${what}\n${text}`);
  }
}
