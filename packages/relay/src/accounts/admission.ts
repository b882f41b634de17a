import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { AggregateKey, Reader, Writer } from '../storage/types.ts';
import { type Caller, requireCaller, verifySignature } from './caller.ts';

/** One check of a caller's right: from a snapshot first, then inside the write transaction. */
export interface AdmissionPhase {
  /** Unix seconds. */
  readonly now: number;
  /** Whether this is the check inside the write transaction. */
  readonly inTransaction: boolean;
  /** The calling device if the same snapshot has read it already. */
  readonly caller?: Caller;
}

/**
 * Returns the calling device for a check, read once for each snapshot.
 *
 * @throws ProtocolError `unauthorized` if it was removed meanwhile
 */
export async function resolveCaller(
  tx: Reader,
  session: DeviceSession,
  { now, caller }: AdmissionPhase,
): Promise<Caller> {
  return caller ?? (await requireCaller(tx, session, now));
}

/** A write that needs a right. */
export interface AdmittedWrite<A, T> {
  readonly session: DeviceSession;
  /** Aggregates that the write locks. */
  readonly aggregates: AggregateKey | readonly AggregateKey[];
  /** Object that the calling device must have signed. */
  readonly signed?: JsonObject & { readonly device_signature: string };
  /** Checks the caller's right and throws if it is missing; uses only what `tx` reads. */
  readonly admit: (tx: Reader, phase: AdmissionPhase) => Promise<A>;
  readonly work: (tx: Writer, admitted: A, now: number) => Promise<T>;
}

/**
 * Makes a write that needs a right. A caller without it is refused from a snapshot, after its
 * signature was verified (05 §12.4, 06 §8.6), so that it neither waits for the group or channel nor
 * delays callers with the right. An admitted caller is checked again inside the transaction, where
 * the right must hold (05 §12.6).
 *
 * @throws ProtocolError `unauthorized`, `invalid_signature`, and the errors of `admit` and `work`
 */
export async function writeAdmitted<A, T>(
  context: RelayContext,
  { session, aggregates, signed, admit, work }: AdmittedWrite<A, T>,
): Promise<T> {
  const { clock, storage } = context;
  const { caller, isAdmitted } = await storage.read(async (tx) => {
    const now = clock.now();
    const caller = await requireCaller(tx, session, now);
    const phase = { now, inTransaction: false, caller };
    return { caller, isAdmitted: await admit(tx, phase).then(() => true, falseIfRefused) };
  });
  if (signed !== undefined) await verifySignature(context, signed, caller);
  if (!isAdmitted) {
    // Checked again: the right may have been given while the signature was verified.
    await storage.read((tx) => admit(tx, { now: clock.now(), inTransaction: false }));
  }
  return await storage.write(aggregates, async (tx) => {
    const now = clock.now();
    return await work(tx, await admit(tx, { now, inTransaction: true }), now);
  });
}

/** @returns `false` for a refusal; throws everything else */
function falseIfRefused(error: unknown): false {
  if (error instanceof ProtocolError) return false;
  throw error;
}
