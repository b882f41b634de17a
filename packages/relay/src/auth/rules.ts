/** Decisions of authentication that need neither storage nor network. */
import { ProtocolError } from '@posthouse/protocol';

/**
 * Refuses a client's time that is too far from the clock; exactly at the tolerance passes.
 * @throws ProtocolError `clock_skew`
 */
export function checkTimestamp(timestamp: number, now: number, tolerance: number): void {
  if (Math.abs(timestamp - now) > tolerance) {
    throw new ProtocolError('clock_skew', "timestamp is too far from this relay's clock");
  }
}
