import { type DestinationStream, type Logger, pino } from 'pino';
import { errorWithoutAddresses } from './hidden-addresses.ts';
import { type LogAddresses, loggedAddress } from './logged-addresses.ts';

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

/** Members that are always redacted, if a call site logs an object that has one. */
const redacted = [
  'token',
  'nonce',
  'params',
  'body',
  'headers',
  'ciphertext',
  'payload',
  'signature',
  'key',
];

/** Limit of buffered bytes while standard error is blocked; later lines are dropped. */
const maxBuffered = 65_536;

/**
 * Creates the relay's logger: JSON lines on stderr; standard output is for results.
 *
 * @param addresses what the members `address` and `client` of a line have; unless `full`, errors have no
 *   public addresses
 */
export function createLog(
  level: LogLevel,
  destination: DestinationStream = standardError(),
  addresses: LogAddresses = 'hashed',
): Logger {
  const paths = redacted.flatMap((name) => [name, `*.${name}`]);
  const address = loggedAddress(addresses);
  const errors =
    addresses === 'full' ? {} : { err: errorWithoutAddresses, error: errorWithoutAddresses };
  const serializers = { address, client: address, ...errors };
  const redact = { paths, censor: '[secret]' };
  return pino({ level, base: null, redact, serializers }, destination);
}

/** If the log cannot be written, for example to a full disk, the relay continues without it. */
function standardError(): DestinationStream {
  const stream = pino.destination({ fd: 2, sync: true, maxLength: maxBuffered });
  stream.on('error', () => {});
  return stream;
}
