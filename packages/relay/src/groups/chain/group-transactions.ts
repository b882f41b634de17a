/**
 * The transactions of calls in a group. Each confirms the calling device first; then stale access
 * must end, before anything else is read or written in the group (05 §7.3, §10.3).
 */
import { type CallingDevice, type DeviceKey, requireCaller } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { AggregateKey, Reader, Writer } from '../../storage/types.ts';
import { readStaleAccess, revokeStaleAccess } from './stale-access.ts';

/** A device's call in a group. */
export interface GroupCall {
  readonly session: DeviceSession;
  readonly groupId: string;
}

/**
 * Reads a group from one snapshot in which no access is stale. If the snapshot shows stale access,
 * it is revoked and another snapshot is read.
 *
 * @throws ProtocolError `unauthorized`, and what `read` throws
 * @example
 * return await readInGroup(context, { session, groupId }, async (tx) => {
 *   const { view } = await loadGroup(tx, groupId, [session.account]);
 *   return { result: { ...groupStateOf(view) } };
 * });
 */
export async function readInGroup<T>(
  context: RelayContext,
  call: GroupCall,
  read: (tx: Reader, calling: CallingDevice) => Promise<T>,
): Promise<T> {
  for (;;) {
    const attempt = await context.storage.read((tx) =>
      attemptIn(context, tx, { call, work: read }),
    );
    if (attempt.stale === undefined) return attempt.result;
    await revokeStaleAccess(context, call.groupId, attempt.stale);
  }
}

/**
 * Writes in a group, in one transaction in which no access is stale. If a device became inactive
 * since the call was admitted, nothing is written: its access is revoked, in a transaction of its
 * own that stays whatever becomes of the call, and the write is tried again.
 *
 * @param call.alsoHolds aggregates that the write holds in addition to the group
 * @throws ProtocolError `unauthorized`, and what `write` throws
 */
export async function writeInGroup<T>(
  context: RelayContext,
  call: GroupCall & { readonly alsoHolds?: readonly AggregateKey[] },
  write: (tx: Writer, calling: CallingDevice) => Promise<T>,
): Promise<T> {
  const { groupId, alsoHolds = [] } = call;
  for (;;) {
    const attempt = await context.storage.write(
      [...alsoHolds, `group:${groupId}`],
      (tx) => attemptIn(context, tx, { call, work: write }),
      { keepsFacts: true },
    );
    if (attempt.stale === undefined) return attempt.result;
    await revokeStaleAccess(context, groupId, attempt.stale);
  }
}

/** What a transaction did, or the devices whose access must end first. */
type Attempt<T> =
  | { readonly stale: undefined; readonly result: T }
  | { readonly stale: readonly DeviceKey[] };

async function attemptIn<X extends Reader, T>(
  { clock }: RelayContext,
  tx: X,
  {
    call: { session, groupId },
    work,
  }: {
    readonly call: GroupCall;
    readonly work: (tx: X, calling: CallingDevice) => Promise<T>;
  },
): Promise<Attempt<T>> {
  const now = clock.now();
  const caller = await requireCaller(tx, session, now);
  const stale = await readStaleAccess(tx, groupId);
  if (stale.length > 0) return { stale };
  return { stale: undefined, result: await work(tx, { caller, now }) };
}
