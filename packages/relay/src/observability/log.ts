import { type DestinationStream, type Logger, pino } from 'pino';

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

/** Creates the relay's logger: JSON lines on stderr; standard output is for results. */
export function createLog(
  level: LogLevel,
  destination: DestinationStream = standardError(),
): Logger {
  const paths = redacted.flatMap((name) => [name, `*.${name}`]);
  return pino({ level, base: null, redact: { paths, censor: '[secret]' } }, destination);
}

/** If the log cannot be written, for example to a full disk, the relay continues without it. */
function standardError(): DestinationStream {
  const stream = pino.destination({ fd: 2, sync: true, maxLength: maxBuffered });
  stream.on('error', () => {});
  return stream;
}
