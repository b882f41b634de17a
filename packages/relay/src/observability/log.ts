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

/** Bytes of lines that wait where standard error takes none; later ones are lost. */
const maxWaiting = 65_536;

/** The relay's logger: JSON lines on stderr, standard output is for results. */
export function createLog(
  level: LogLevel,
  destination: DestinationStream = standardError(),
): Logger {
  const paths = secrets.flatMap((name) => [name, `*.${name}`]);
  return pino({ level, base: null, redact: { paths, censor: '[secret]' } }, destination);
}

/** A relay that cannot write its log, as when that disk is full, goes on without. */
function standardError(): DestinationStream {
  const stream = pino.destination({ fd: 2, sync: true, maxLength: maxWaiting });
  stream.on('error', () => {});
  return stream;
}
