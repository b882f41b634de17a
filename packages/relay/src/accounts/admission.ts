import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { AggregateKey, Reader, Writer } from '../storage/types.ts';
import { type Caller, requireCaller, verifySignature } from './caller.ts';

/** When somebody's rights are looked at. */
export interface AdmissionPhase {
  /** Unix seconds. */
  readonly now: number;
  /** Whether this is the write itself, and no snapshot before it. */
  readonly inTransaction: boolean;
  /** The calling device, where the same snapshot has told it already. */
  readonly caller?: Caller;
}

/**
 * The calling device at a look.
 * @throws ProtocolError `unauthorized` where it was removed meanwhile
 */
export async function resolveCaller(
  tx: Reader,
  session: DeviceSession,
  { now, caller }: AdmissionPhase,
): Promise<Caller> {
  return caller ?? (await requireCaller(tx, session, now));
}

/** A write that many may ask for and few may make. */
export interface AdmittedWrite<A, T> {
  readonly session: DeviceSession;
  /** What the write holds. */
  readonly aggregates: AggregateKey | readonly AggregateKey[];
  /** What the calling device must have signed. */
  readonly signed?: JsonObject & { readonly device_signature: string };
  /** Whether the caller may; throws where it may not. It decides by its own look alone. */
  readonly admit: (tx: Reader, look: AdmissionPhase) => Promise<A>;
  readonly work: (tx: Writer, admitted: A, now: number) => Promise<T>;
}

/**
 * The one way to a write that needs a right. Who lacks it is refused from a snapshot, behind its
 * signature (05 §12.4, 06 §8.6): it neither waits for the group or the channel nor lets those wait
 * who may write there. Who is admitted is looked at again inside the write, where the right must
 * hold (05 §12.6).
 *
 * @throws ProtocolError `unauthorized`, `invalid_signature`, and what `admit` and `work` refuse with
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
    // Looked at anew: while the signature was verified the right may have come.
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
