import { isTemporary, retryHintOf, waitBeforeRetry } from '../connect/backoff.ts';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { AccountCore } from '../core.ts';

/** Opens a connection, trying as often as for a call. @throws RelayRefused, RelayUnreachable */
export async function reachRelay(
  { clock, random, retry }: AccountCore,
  connection: RelayConnection,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await connection.authenticated(signal);
      return;
    } catch (error) {
      signal.throwIfAborted();
      const hint = { random, hintSeconds: retryHintOf(error) };
      const wait = isTemporary(error) ? waitBeforeRetry(attempt, retry, hint) : undefined;
      if (wait === undefined) throw error;
      await clock.sleep(wait, signal);
    }
  }
}

/**
 * Returns when a relay says it was put back to an earlier state, Unix seconds; 0 if it never was. A
 * restore ends all sessions (02 §11.2). A WebSocket ends with its session; over HTTPS the next call finds
 * out, so what that call answered is of another value.
 */
export async function restoredAtOf(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<number> {
  const connection = core.relay(relayId);
  await reachRelay(core, connection, signal);
  return (await connection.authenticated(signal)).restoredAt ?? 0;
}
