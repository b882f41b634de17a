/** What follows from the answer to a `message.deliver` (04 section 16.2, 07 §C8). No storage. */
import { checkDeliveryStatus, deliveryEndCode, deliveryErrorAction } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import type { RelayAnswer } from '../context.ts';
import { unlocated } from './lane-store.ts';

/** Outcome of an attempt. */
export type AttemptResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | {
      readonly kind: 'later';
      /** Seconds the relay asked to wait. */
      readonly retryAfter: number;
      /** The relay to ask first next time. */
      readonly target: string | undefined;
      readonly destination: string;
      /** Whether the attempt is brought forward when the relay is back. */
      readonly untilBack: boolean;
    };

/** Locates the recipient again after the backoff. */
export const locateLater: AttemptResult = {
  ...{ kind: 'later', retryAfter: 0, target: undefined },
  ...{ destination: unlocated, untilBack: false },
};

/**
 * Determines the outcome from an answer (04 section 16.2, 16.3).
 *
 * @param relayId the relay that was asked
 * @param bound the relay that may have received the message before
 */
export function afterAnswer(
  answer: RelayAnswer,
  { relayId, bound }: { readonly relayId: string; readonly bound: string | undefined },
): AttemptResult {
  const later = { kind: 'later', retryAfter: 0, destination: relayId } as const;
  switch (answer.kind) {
    case 'result':
      if (isAccepted(answer.value)) return { kind: 'accepted' };
      return { ...later, target: relayId, untilBack: false };
    case 'unreachable':
      // No request was sent this time: only an earlier one can bind the delivery to the relay.
      return { ...later, target: bound, untilBack: true };
    case 'unknown':
      return { ...later, target: relayId, untilBack: true };
    // An answer that fails validation is a bad gateway (07 §C4); the message may have been accepted.
    case 'invalid':
      return { ...later, target: relayId, untilBack: false };
    case 'refused':
      return afterRefusal(answer, relayId);
  }
}

/** Returns whether the result of `message.deliver` confirms acceptance (07 §C8). */
function isAccepted(value: JsonValue): boolean {
  try {
    checkDeliveryStatus(value);
    return value.status === 'target_accepted';
  } catch {
    return false;
  }
}

/**
 * Determines from the code of a refusal whether to retry, to locate the recipient again, or to end.
 *
 * @param relayId the relay that refused; absent for this relay
 */
export function afterRefusal(
  refusal: { readonly code: string; readonly message: string; readonly retryAfter?: number },
  relayId?: string,
): AttemptResult {
  const { code, message, retryAfter = 0 } = refusal;
  switch (deliveryErrorAction(code)) {
    case 'retry':
      return {
        ...{ kind: 'later', retryAfter, target: relayId },
        ...{ destination: relayId ?? unlocated, untilBack: false },
      };
    case 'reroute':
      return locateLater;
    case 'end':
      return { kind: 'failed', code: deliveryEndCode(code), message };
  }
}
