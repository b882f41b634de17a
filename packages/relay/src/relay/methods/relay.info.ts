import type { Handler } from '../../call.ts';

/** What the relay says about itself and its limits (02 §11.2). */
export function relayInfo(name: string): Handler {
  return async ({ identity, clock, limits }) => ({
    result: {
      relay_id: identity.relayId,
      name,
      server_time: clock.now(),
      limits: { message_retention: limits.messageRetention },
    },
  });
}
