import type { RelayContext } from '../context.ts';
import { limitedText } from '../dispatch/refusal.ts';
import type { Writer } from '../storage/types.ts';
import type { AttemptResult } from './attempt-result.ts';
import { type Delivery, deleteDelivery, failDelivery, postpone } from './queue-store.ts';
import { nextAttemptAt } from './rules.ts';
import { endResult } from './store.ts';

/** What an attempt ended with. */
export interface Outcome {
  readonly delivery: Delivery;
  readonly result: AttemptResult;
}

/** Ends or postpones a delivery, with the message's result. */
export async function storeOutcome(
  { clock, limits, random }: RelayContext,
  tx: Writer,
  { delivery, result }: Outcome,
): Promise<void> {
  if (result.kind === 'later') {
    const { attempts, deadline } = delivery;
    const { retryAfter, target, destination, untilBack } = result;
    const chance = (random(1)[0] as number) / 256;
    const now = clock.now();
    const at = nextAttemptAt({ now, attempts, deadline, retryAfter, chance, limits });
    await postpone(tx, delivery, { at, destination, target, wakeAfter: untilBack ? 0 : at });
    return;
  }
  if (result.kind === 'accepted') {
    // Also if another process has claimed the delivery.
    if (await deleteDelivery(tx, delivery)) await endResult(tx, delivery);
    return;
  }
  // The text may be of another relay.
  const message = limitedText(result.message, limits.relayErrorText);
  const error = { code: result.code, message };
  if (await failDelivery(tx, delivery)) await endResult(tx, delivery, { error });
}
