import { createHmac, randomBytes } from 'node:crypto';

/** How addresses of clients and relays are logged. */
export type LogAddresses = 'off' | 'hashed' | 'full';

const dayMilliseconds = 86_400_000;

/** Bytes of the HMAC that are shown: enough to tell addresses of a day apart. */
const shownBytes = 8;

/**
 * Makes the function that addresses pass before they are logged: as they are, not at all, or as a hash
 * by a random key of the day (UTC), which is in memory alone. Lines of one day and process can be
 * compared then; after it, an address cannot be found from its hash.
 *
 * @param now Unix milliseconds
 */
export function loggedAddress(
  how: LogAddresses,
  now: () => number = Date.now,
): (address: unknown) => unknown {
  if (how === 'full') return (address) => address;
  if (how === 'off') return () => undefined;
  let key = randomBytes(32);
  let day = Math.floor(now() / dayMilliseconds);
  return (address) => {
    const today = Math.floor(now() / dayMilliseconds);
    if (today !== day) [day, key] = [today, randomBytes(32)];
    const mac = createHmac('sha256', key).update(String(address)).digest();
    return `#${mac.subarray(0, shownBytes).toString('hex')}`;
  };
}
