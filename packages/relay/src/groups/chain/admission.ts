import { ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { verifySignature } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Reader } from '../../storage/types.ts';
import { type CallingDevice, type GroupCall, readInGroup } from './group-transactions.ts';

/**
 * Refuses a caller without the right to write before the group is held, after its signature
 * (05 §12.4): a refused call does not wait for the writes of others, nor they for it. The write
 * checks the right again (05 §12.6).
 *
 * @param call.signed what the calling device must have signed
 * @param requireRight throws if the caller lacks the right
 * @throws ProtocolError `unauthorized`, `invalid_signature`, and what `requireRight` throws
 */
export async function admitToWrite(
  context: RelayContext,
  call: GroupCall & { readonly signed?: JsonObject & { readonly device_signature: string } },
  requireRight: (tx: Reader, calling: CallingDevice) => Promise<unknown>,
): Promise<void> {
  const { caller, isAdmitted } = await readInGroup(context, call, async (tx, calling) => {
    const isAdmitted = await requireRight(tx, calling).then(() => true, isNoRefusal);
    return { caller: calling.caller, isAdmitted };
  });
  if (call.signed !== undefined) await verifySignature(context, call.signed, caller);
  // Checked again: the right may have come while the signature was verified.
  if (!isAdmitted) await readInGroup(context, call, requireRight);
}

/** @returns `false` for a refusal; throws everything else */
function isNoRefusal(error: unknown): false {
  if (error instanceof ProtocolError) return false;
  throw error;
}
