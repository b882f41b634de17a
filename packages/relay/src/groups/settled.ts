import type { AnyHandler, Handlers } from '../dispatch/handler.ts';
import { AccessToEnd } from './chain/stale-access.ts';
import { endAccessIn } from './upkeep/inactive-devices.ts';

/**
 * Handlers that find access ended where it has, although the job that ends it has not had its turn:
 * they do that part of its work, and begin again.
 */
export function settled(handlers: Handlers): Handlers {
  const entries = Object.entries(handlers);
  return Object.fromEntries(
    entries.map(([name, handler]) => [name, settledOne(handler as AnyHandler)]),
  );
}

function settledOne(handler: AnyHandler): AnyHandler {
  return async (context, call) => {
    for (;;) {
      try {
        return await handler(context, call);
      } catch (error) {
        if (!(error instanceof AccessToEnd)) throw error;
        await endAccessIn(context, error);
      }
    }
  };
}
