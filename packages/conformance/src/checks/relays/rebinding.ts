import { randomBytes } from 'node:crypto';
import { ed25519Identity } from '@posthouse/peer';
import { NotApplicable, Violation } from '../../assert.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';

/**
 * Gives a relay of the kit another Peer ID, and dials with it until the relay under test admits it,
 * which may read the descriptor of an endpoint now and then only.
 *
 * @throws NotApplicable if it did not read it in time
 */
export async function rebind(seat: RelaySeat): Promise<void> {
  seat.identity = ed25519Identity(randomBytes(32));
  await seat.listen();
  for (let attempt = 0; attempt < 4; attempt += 1) {
    try {
      await seat.connect();
      return;
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
    }
  }
  throw new NotApplicable('the relay did not read the new descriptor within two minutes');
}
