import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { AggregateKey, Reader, Writer } from '../storage/types.ts';
import { type Caller, requireCaller, verifySignature } from './caller.ts';

/** The calling device as a transaction reads it. */
export interface CallingDevice {
  readonly caller: Caller;
  /** Time of the transaction, Unix seconds. */
  readonly now: number;
}

/** An object that the calling device must have signed. */
export type SignedByCaller = JsonObject & { readonly device_signature: string };

/** A calling device that has a right. */
export interface Admitted<A> extends CallingDevice {
  /** What was read to find the right. */
  readonly right: A;
}

/** Reads one snapshot that begins with confirming the calling device. */
type ReadAsCaller = <T>(work: (tx: Reader, calling: CallingDevice) => Promise<T>) => Promise<T>;

/**
 * Refuses a caller without a right, from a snapshot and after its signature was verified (05 §12.4,
 * 06 §8.6): a refused call neither waits for the group or channel nor delays callers with the right.
 * The write must check the right again (05 §12.6).
 *
 * @param check.signed what the calling device must have signed
 * @param check.requireRight throws if the caller lacks the right; uses only what `tx` reads
 * @throws ProtocolError `unauthorized`, `invalid_signature`, and what `requireRight` throws
 */
export async function admitCaller<A>(
  context: RelayContext,
  read: ReadAsCaller,
  check: {
    readonly signed: SignedByCaller | undefined;
    readonly requireRight: (tx: Reader, calling: CallingDevice) => Promise<A>;
  },
): Promise<Admitted<A>> {
  const { signed, requireRight } = check;
  const admit = async (tx: Reader, calling: CallingDevice): Promise<Admitted<A>> => {
    return { ...calling, right: await requireRight(tx, calling) };
  };
  const { caller, admitted } = await read(async (tx, calling) => {
    const admitted = await admit(tx, calling).catch(undefinedIfRefused);
    return { caller: calling.caller, admitted };
  });
  if (signed !== undefined) await verifySignature(context, signed, caller);
  // Checked again: the right may have been given while the signature was verified.
  return admitted ?? (await read(admit));
}

/** A write that needs a right. */
export interface AdmittedWrite<A, T> {
  readonly session: DeviceSession;
  /** Aggregates that the write locks. */
  readonly aggregates: AggregateKey | readonly AggregateKey[];
  readonly signed: SignedByCaller;
  /** Checks the caller's right and throws if it is missing; uses only what `tx` reads. */
  readonly admit: (tx: Reader, calling: CallingDevice) => Promise<A>;
  /** Asks for what is no matter of storage, once the caller is admitted. */
  readonly ask?: (admitted: Admitted<A>) => Promise<void>;
  /** Makes the write as an append, if it can; `undefined` if not. */
  readonly append?: (admitted: Admitted<A>) => Promise<T | undefined>;
  readonly work: (tx: Writer, admitted: A, now: number) => Promise<T>;
}

/**
 * Makes a write that needs a right: checked by {@link admitCaller} first, and again inside the
 * transaction.
 *
 * @throws ProtocolError `unauthorized`, `invalid_signature`, and the errors of `admit`, `ask` and `work`
 */
export async function writeAdmitted<A, T>(
  context: RelayContext,
  { session, aggregates, signed, admit, ask, append, work }: AdmittedWrite<A, T>,
): Promise<T> {
  const { clock, storage } = context;
  const callingIn = async (tx: Reader): Promise<CallingDevice> => {
    const now = clock.now();
    return { caller: await requireCaller(tx, session, now), now };
  };
  const admitted = await admitCaller(
    context,
    (check) => storage.read(async (tx) => await check(tx, await callingIn(tx))),
    { signed, requireRight: admit },
  );
  await ask?.(admitted);
  const appended = await append?.(admitted);
  if (appended !== undefined) return appended;
  return await storage.write(aggregates, async (tx) => {
    const calling = await callingIn(tx);
    return await work(tx, await admit(tx, calling), calling.now);
  });
}

/** @returns `undefined` for a refusal; throws everything else */
function undefinedIfRefused(error: unknown): undefined {
  if (!(error instanceof ProtocolError)) throw error;
}
