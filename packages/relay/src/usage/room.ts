import { ProtocolError } from '@posthouse/protocol';

/** Seconds to wait for room: retention and deletion give some back at any time. */
const pause = 3_600;

/**
 * Refuses more content for a group or channel that stores as many bytes as it may (02 §18).
 *
 * @param stored bytes of its events
 * @throws ProtocolError `rate_limited` with an hour in `retry_after`
 */
export function requireRoom(stored: number, most: number, what: string): void {
  if (stored < most) return;
  throw new ProtocolError(
    'rate_limited',
    `${what} stores as many bytes as it may: try again later`,
    {
      data: { retry_after: pause },
    },
  );
}
