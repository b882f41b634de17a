import { type DestinationStream, type Logger, pino } from 'pino';

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

/** What never reaches a log, should a call site ever pass an object that has it. */
const secrets = [
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

/** The relay's logger: JSON lines on stderr, standard output is for results. */
export function createLog(
  level: LogLevel,
  destination: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Logger {
  const paths = secrets.flatMap((name) => [name, `*.${name}`]);
  return pino({ level, base: null, redact: { paths, censor: '[secret]' } }, destination);
}
