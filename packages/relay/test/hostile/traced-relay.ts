import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { encodeRelayError } from '../../src/dispatch/encode.ts';
import type { Reader, Writer } from '../../src/storage/types.ts';
import type { CallOptions, InProcessRelay } from '../support/in-process-relay.ts';

/** What a caller receives, and what the relay did for it. */
export interface Trace {
  /** The body of the error, or `ok`. */
  readonly answer: string;
  /** Statements and signature checks, in order. */
  readonly steps: readonly string[];
}

/** Watches what a relay reads, writes and verifies during one call. */
export async function traceCall(
  relay: InProcessRelay,
  method: string,
  params: unknown,
  options: CallOptions = {},
): Promise<Trace> {
  const steps: string[] = [];
  using _watched = watch(relay, steps);
  try {
    await relay.call(method, params, options);
    return { answer: 'ok', steps };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { answer: encodeRelayError(error), steps };
  }
}

/** Notes every statement and signature check until it is disposed of. */
export function watch({ context }: InProcessRelay, steps: string[]): Disposable {
  const { storage, verifier } = context;
  const { read, write } = storage;
  const { verify, verifyOnce } = verifier;
  const noted = <T extends Reader | Writer>(tx: T): T =>
    new Proxy(tx, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (typeof args[0] === 'string') steps.push(`${String(name)} ${plain(args[0])}`);
          return Reflect.apply(value, target, args);
        };
      },
    });
  const note = (checks: readonly SignatureCheck[]) => {
    for (const { scheme } of checks) steps.push(`verify ${scheme}`);
    return checks;
  };
  Object.assign(storage, {
    read: (work: (tx: Reader) => Promise<unknown>) => read.call(storage, (tx) => work(noted(tx))),
    write: (of: never, work: (tx: Writer) => Promise<unknown>, ...rest: []) =>
      write.call(storage, of, (tx) => work(noted(tx)), ...rest),
  });
  Object.assign(verifier, {
    verify: (checks: readonly SignatureCheck[], what: string) =>
      verify.call(verifier, note(checks), what),
    verifyOnce: (text: string, checks: () => readonly SignatureCheck[], what: string) =>
      verifyOnce.call(verifier, text, () => note(checks()), what),
  });
  return {
    [Symbol.dispose]() {
      Object.assign(storage, { read, write });
      Object.assign(verifier, { verify, verifyOnce });
    },
  };
}

const plain = (sql: string) => sql.replaceAll(/\s+/g, ' ').trim();
